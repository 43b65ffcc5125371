from pathlib import Path

import pytest
import torch

from heedful.training import precision


def test_a_measurement_that_nobody_asked_for_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path))
    monkeypatch.setattr(precision, "PROBES", {})
    precision.begin_measurement("auto", torch.device("cpu"))
    (process,) = precision.PROBES.values()
    assert process.poll() is None
    precision.end_measurements()
    assert not precision.PROBES
    assert process.poll() is not None
