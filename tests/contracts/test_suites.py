"""The public suites: their references agree with transformers, they need no pytest, the handouts pass, and all is documented."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from heedful.contracts.suite import SUITES
from heedful.contracts.suites.transformer import draw_ids, draw_model
from heedful.course.bugs import build_subject
from heedful.course.check import check_file, run_suite
from heedful.course.forms.tiny_bert import TinyBert, fill_encoder, make_their_config

ROOT = Path(__file__).parents[2]
NAMED = [suite for name in SUITES if (suite := SUITES.find(name)).claims]


def test_the_reference_of_bert_agrees_with_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    theirs, ours = transformers.BertModel(make_their_config()).eval(), TinyBert("transformers")
    for model in (theirs, ours):
        fill_encoder(model, draw_model(seed=3))
    ids, mask = draw_ids(3, 7), torch.ones(3, 7, dtype=torch.long)
    mask[0, 4:] = 0
    with torch.no_grad():
        wanted = theirs(ids, attention_mask=mask)
        states, pooled = ours(ids, attention_mask=mask)
    real = mask[..., None]
    assert (states * real - wanted.last_hidden_state * real).abs().max() < 1e-5
    assert (pooled - wanted.pooler_output).abs().max() < 1e-5


@pytest.mark.parametrize(("suite", "least"), [("bert", 16), ("joint-loss", 6)])
@pytest.mark.filterwarnings("ignore")
def test_the_classes_of_the_handout_pass(suite: str, least: int) -> None:
    source = (ROOT / "handouts" / "yelp" / "modeling.py").read_text("utf-8")
    verdicts = run_suite(suite, build_subject(source, suite, "modeling"))
    assert [(v.claim, v.message, v.mistake) for v in verdicts if not v.passed] == []
    assert sum(v.status == "passed" for v in verdicts) >= least


def test_the_baseline_of_the_handout_passes_as_a_script() -> None:
    verdicts = check_file(ROOT / "handouts" / "birthplaces" / "src" / "london_baseline.py", "london-baseline")
    assert [(v.claim, v.status) for v in verdicts if v.status != "passed"] == []


def test_suites_are_importable_without_pytest() -> None:
    code = "import sys; from heedful.contracts import SUITES; [SUITES.find(n) for n in SUITES]; print('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_table_of_suites_is_complete() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "contracts_table.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("suite", NAMED, ids=lambda suite: suite.name)
def test_claims_are_sentences_about_operations_that_exist(suite: object) -> None:
    names = [claim.name for claim in suite.claims]  # type: ignore[attr-defined]
    assert len(set(names)) == len(names)
    for claim in suite.claims:  # type: ignore[attr-defined]
        assert claim.sentence.endswith(".")
        assert claim.sentence[:1].isupper() or claim.sentence.startswith(
            ("r (", "decode", "x and y", "y is", "15")
        )
        assert claim.operation in suite.operations  # type: ignore[attr-defined]
