"""Named random streams."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from heedful.data.random import stream


def test_a_stream_depends_on_its_name_and_keys_alone():
    first = stream(1, "masking", 2, 3).integers(0, 2**63, 8)
    stream(9, "elsewhere").random(100)
    assert (stream(1, "masking", 2, 3).integers(0, 2**63, 8) == first).all()
    assert (stream(np.int64(1), "masking", np.int32(2), 3).integers(0, 2**63, 8) == first).all()


def test_every_part_of_the_name_changes_the_stream():
    names = [
        (0, "a"),
        (1, "a"),
        (0, "b"),
        (0, "a", 0),
        (0, "a", 1),
        (0, "a", 0, 1),
        (0, "a", 1, 0),
        (0, "a, 0"),
    ]
    drawn = [tuple(stream(*name).integers(0, 2**63, 4)) for name in names]
    assert len(set(drawn)) == len(names)


def test_streams_of_neighbouring_steps_are_not_correlated():
    a = np.stack([stream(0, "masking", 0, step).random(2000) for step in range(20)])
    correlation = np.corrcoef(a) - np.eye(20)
    assert np.abs(correlation).max() < 5 / np.sqrt(2000)


def test_another_process_draws_the_same_numbers():
    code = "from heedful.data.random import stream; print(stream(5, 'x', 7).integers(0, 2**63, 3).tolist())"
    out = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": "77"}, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == str(stream(5, "x", 7).integers(0, 2**63, 3).tolist())
