"""Every handout's command runs, short, and prints what its reader looks for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tiny import make_model

ROOT = Path(__file__).parents[2] / "handouts"
pytestmark = pytest.mark.needs("minilm")


def run(folder: str, *words: object, status: int = 0, **environment: str) -> str:
    base = {k: v for k, v in os.environ.items() if k not in ("HEEDFUL_DATA", "HEEDFUL_MODELS")}
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=ROOT / folder,
        capture_output=True,
        text=True,
        check=False,
        env=base | {"HF_HUB_OFFLINE": "1", **environment},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A tiny model in the place of a real one, which takes a hundred times as long."""
    return {"HEEDFUL_STAND_IN": str(make_model(tmp_path_factory.mktemp("models") / "minilm", max_len=512))}


QUESTION = "is the {} red"
PASSAGE = "The {} is {}. Nobody knows why it was painted like that."


@pytest.fixture(scope="session")
def boolq(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the course has it, with few rows."""
    folder = tmp_path_factory.mktemp("boolq")
    things = [
        f"{a} {b}" for a in ("old", "new", "tall", "wide") for b in ("house", "door", "gate", "boat", "cup")
    ]
    rows = [
        {
            "question": QUESTION.format(thing),
            "passage": PASSAGE.format(thing, color),
            "answer": color == "red",
        }
        for color in ("red", "blue", "green")
        for thing in things
    ]
    for name, part in (("train", rows[::2]), ("dev", rows[1::2])):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in part))
    return folder


def own_defaults(folder: Path, text: str) -> dict[str, str]:
    """A person's own defaults, which make a command of a handout shorter; what the handout says comes first."""
    (folder / "heedful").mkdir()
    (folder / "heedful" / "heedful.toml").write_text(text)
    return {"XDG_CONFIG_HOME": str(folder)}


def ends_well(text: str, out: Path) -> None:
    assert f"run directory: {out}\nfigures: {out / 'figures'}\nreport: {out / 'report.html'}\n" in text
    assert (out / "report.html").is_file()
    assert list((out / "figures").glob("*.png"))


def names_its_stand_in(text: str, out: Path, *models: str) -> None:
    """In the first line, in every results.json and in the title of every figure."""
    note = f"minilm stands in for {', '.join(models)}"
    assert text.splitlines()[0].startswith(f"STAND-IN: {note}")
    results = [*out.glob("results.json"), *out.glob("runs/*/results.json")]
    assert results
    assert all(json.loads(file.read_text())["note"] == note for file in results)
    titles = re.findall(r'"title": ?\{"text": ?\[(.*?)\]', (out / "report.html").read_text())
    assert len(titles) > 2
    assert all(note in title.replace('","', " ") for title in titles)


def test_boolq_prints_the_lines_a_grader_looks_for(stand_in: dict[str, str], tmp_path: Path) -> None:
    words = ("--experiment", "overfit", "--small_subset", "True", "--device", "cuda", "--num_epochs", 2)
    text = run("boolq", "classification.py", *words, "--max_len", 16, "--out", tmp_path / "o", **stand_in)
    names_its_stand_in(text, tmp_path / "o", "distilbert-base-uncased")
    assert "Specified arguments" in text
    assert "no CUDA here: using the CPU" in text
    assert "using world/boolq, which is generated" in text
    assert " ===> Epoch 1" in text
    for line in ("training", "validation", "DEV", "TEST"):
        assert re.search(rf" - Average {line} metrics: accuracy={{'accuracy': [01]\.\d+}}", text)
    found = json.loads((tmp_path / "o" / "results.json").read_text())
    assert found["splits"]["test"]["n"] > 1000, "only training rows are few"
    assert found["splits"]["dev"]["n"] > 300
    rows = [json.loads(line)["split"] for line in (tmp_path / "o" / "metrics.jsonl").read_text().splitlines()]
    assert rows == ["train", "train_eval"] * 2, "dev is scored once, at the end"
    ends_well(text, tmp_path / "o")


def test_without_a_stand_in_an_unreachable_model_is_one_line() -> None:
    said = run("boolq", "classification.py", status=2)
    assert "distilbert-base-uncased" in said
    assert "Traceback" not in said


def test_random_weights_never_stand_in() -> None:
    said = run("boolq", "classification.py", status=2, HEEDFUL_STAND_IN="bert-tiny")
    assert "random weights" in said


def test_boolqs_prefix_is_vectors_before_the_text_and_a_linear_head(boolq: Path, tmp_path: Path) -> None:
    words = ("--experiment", "mine", "--small_subset", "False", "--type", "prefix", "--num_epochs", 1)
    words += ("--data_dir", boolq, "--out", tmp_path / "o")
    text = run("boolq", "classification.py", *words, HEEDFUL_STAND_IN="minilm")
    assert "130 d + 2 = 49,922" in text
    assert json.loads((tmp_path / "o" / "results.json").read_text())["task"] == "boolq"


def test_boolqs_models_are_each_searched_and_a_stand_in_takes_part_once(
    stand_in: dict[str, str], boolq: Path, tmp_path: Path
) -> None:
    models = ("distilbert-base-uncased", "roberta-base")
    words = (
        "--experiment",
        "compare",
        "--models",
        ",".join(models),
        "--rates",
        "1e-4,1e-3",
        "--epochs",
        "1,2",
    )
    text = run("boolq", "classification.py", *words, "--data_dir", boolq, "--out", tmp_path / "o", **stand_in)
    names_its_stand_in(text, tmp_path / "o", *models)
    assert len(list((tmp_path / "o" / "runs").glob("full,lr=*,epochs=[12],seed=0/results.json"))) == 4
    ends_well(text, tmp_path / "o")


def test_boolqs_methods_are_compared_with_counts_and_formulas(
    stand_in: dict[str, str], boolq: Path, tmp_path: Path
) -> None:
    words = ("--experiment", "peft", "--num_epochs", 1, "--data_dir", boolq, "--out", tmp_path / "o")
    text = run("boolq", "classification.py", *words, **stand_in)
    for line in ("head: 2 d + 2 = 34", "prompt: 130 d + 2 = 2,082", "full: "):
        assert f"trained parameters, minilm {line}" in text
    names_its_stand_in(text, tmp_path / "o", "distilbert-base-uncased")


def test_boolqs_search_goes_through_its_grid(stand_in: dict[str, str], boolq: Path, tmp_path: Path) -> None:
    words = ("--experiment", "search", "--small_subset", "--type", "head", "--data_dir", boolq)
    text = run("boolq", "classification.py", *words, "--out", tmp_path / "o", **stand_in)
    names = {folder.name for folder in (tmp_path / "o" / "runs").iterdir()}
    assert names == {f"lr={rate},epochs={n}" for rate in ("0.0001", "0.0005", "0.001") for n in (5, 7, 9)}
    names_its_stand_in(text, tmp_path / "o", "distilbert-base-uncased")


TINYBERT = "huawei-noah/TinyBERT_General_4L_312D"


@pytest.fixture(scope="session")
def yelp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stars and reviews as the course has them."""
    folder = tmp_path_factory.mktemp("yelp")
    words = ("awful", "poor", "fair", "good", "superb")
    rows = [f'"{stars + 1}","A {words[stars]} place, visit {i}."\n' for i in range(12) for stars in range(5)]
    for name, part in (("train", rows[:40]), ("valid", rows[40:50]), ("test", rows[50:])):
        (folder / f"{name}.csv").write_text("".join(part))
    (folder / "unlabeled.txt").write_text("".join(f"We came {i} times and liked it.\n" for i in range(30)))
    return folder


def yelp_words(data: Path, out: Path) -> list[object]:
    """The command of the handout, with few epochs."""
    words: list[object] = ["--model_type", "bert", "--model_name_or_path", TINYBERT, "--task_name", "yelp"]
    words += ["--do_train", "--do_eval", "--data_dir", data, "--per_gpu_train_batch_size", 32]
    words += ["--learning_rate", "3e-5", "--num_train_epochs", 1, "--max_seq_length", 128]
    return [*words, "--output_dir", out, "--evaluate_during_training"]


def test_yelp_trains_and_refuses_a_folder_that_is_not_empty(
    stand_in: dict[str, str], yelp: Path, tmp_path: Path
) -> None:
    words = yelp_words(yelp, tmp_path / "o")
    text = run("yelp", "classifier.py", *words, "--overwrite_output_dir", **stand_in)
    names_its_stand_in(text, tmp_path / "o", TINYBERT)
    assert "test_acc = " in text
    ends_well(text, tmp_path / "o")
    assert "overwrite" in run("yelp", "classifier.py", *words, status=2, **stand_in)


def test_yelp_trains_jointly_on_the_text_beside_its_labels(
    stand_in: dict[str, str], yelp: Path, tmp_path: Path
) -> None:
    words = [*yelp_words(yelp, tmp_path / "o"), "--overwrite_output_dir", "--logging_steps", 1]
    words += ["--train_data_file", "unlabeled.txt", "--block_size", 128, "--mlm_alpha", 0.3, "--line_by_line"]
    words += ["--warmup_steps", 1, "--weight_decay", 0.01, "--gradient_accumulation_steps", 2, "--no_cuda"]
    words += ["--max_grad_norm", 1.0, "--max_steps", 2, "--seed", 42, "--mlm_probability", 0.15]
    words += ["--per_gpu_eval_batch_size", 8, "--save_steps", 50]
    text = run("yelp", "classifier_mlm.py", *words, **stand_in)
    assert "test_acc = " in text
    config = (tmp_path / "o" / "config.toml").read_text()
    for line in ("mlm_weight = 0.3", "eval_every = 1", "steps = 2", f'unlabeled = "{yelp}/unlabeled.txt"'):
        assert line in config
    dev = [row for row in (tmp_path / "o" / "metrics.jsonl").read_text().splitlines() if '"dev"' in row]
    assert len(dev) >= 2, "--logging_steps is the interval of evaluations"


def test_yelp_with_50_labels_compares_both_ways_to_train(
    stand_in: dict[str, str], yelp: Path, tmp_path: Path
) -> None:
    words = ["--model_name_or_path", TINYBERT, "--data_dir", yelp, "--sizes", 20, "--seeds", 2]
    words += [
        "--output_dir",
        tmp_path / "o",
        "--",
        "--rates",
        "5e-5",
        "--mlm-weights",
        0.3,
        "--least-steps",
        1,
    ]
    text = run("yelp", "compare_50.py", *words, **stand_in)
    names_its_stand_in(text, tmp_path / "o", TINYBERT)
    assert "joint" in text
    ends_well(text, tmp_path / "o")


def test_yelps_classes_have_the_courses_signatures() -> None:
    code = """
import torch
from modeling import BertForCLSMLM, BertForMaskedLanguageModel, BertForSequenceClassification
ids, mask = torch.randint(1000, (2, 7)), torch.ones(2, 7, dtype=torch.long)
loss, logits = BertForSequenceClassification("minilm", 5)(ids, mask, torch.tensor([0, 4]))
assert logits.shape == (2, 5) and loss.shape == ()
labels = torch.full((2, 7), -100); labels[0, 3] = 5
loss, logits = BertForMaskedLanguageModel("minilm")(ids, mask, labels)
assert logits.shape[:2] == (2, 7)
model = BertForCLSMLM("minilm", 5, mlm_alpha=0.5).eval()
both = model(ids, mask, torch.tensor([0, 4]), ids, mask, labels)[0]
alone = model(ids, mask, torch.tensor([0, 4]))[0]
assert torch.allclose(both, alone + 0.5 * model.mlm(ids, mask, labels)[0])
both.backward()
print("ok")
"""
    assert run("yelp", "-c", code).strip() == "ok"


@pytest.fixture(scope="session")
def born(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A little of the world, in the course's files."""
    from heedful.data import load_task

    folder, task = tmp_path_factory.mktemp("born"), load_task("world/birthplaces")
    (folder / "wiki.txt").write_text(
        "\n".join((task.folder / "wiki.txt").read_text().splitlines()[:60]) + "\n"
    )
    rows = [f"{e.text}\t{e.answer}\n" for e in list(task.splits["train"])[:32]]
    (folder / "birth_places_train.tsv").write_text("".join(rows[:24]))
    (folder / "birth_dev.tsv").write_text("".join(rows[24:]))
    (folder / "birth_test_inputs.tsv").write_text("".join(row.split("\t")[0] + "\n" for row in rows[:8]))
    return folder


def birth(function: str, variant: str, corpus: Path | str, **options: object) -> str:
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return run("birthplaces", "src/run.py", function, variant, corpus, *words)


def test_birth_places_from_pretraining_to_predictions(born: Path, tmp_path: Path) -> None:
    p, q, wiki = tmp_path / "p", tmp_path / "q", born / "wiki.txt"
    ends_well(birth("pretrain", "vanilla", wiki, writing_params_path=p, epochs=1), p)
    train = born / "birth_places_train.tsv"
    given = {"reading_params_path": p, "writing_params_path": q, "finetune_corpus_path": train, "epochs": 1}
    ends_well(birth("finetune", "vanilla", wiki, **given), q)
    assert "lr = 0.0006" in (q / "config.toml").read_text()
    asked = {"reading_params_path": q, "outputs_path": tmp_path / "out"}
    text = birth("evaluate", "vanilla", wiki, eval_corpus_path="birth_dev.tsv", **asked)
    assert re.fullmatch(r"Correct: \d+ out of 8: [\d.]+%\n", text), "a name alone is beside the corpus"
    assert len((tmp_path / "out").read_text().splitlines()) == 8
    text = birth("evaluate", "vanilla", wiki, eval_corpus_path="birth_test_inputs.tsv", **asked)
    assert text == "No gold birth places provided; returning (0,0)\n"


@pytest.mark.parametrize("variant", ["rope", pytest.param("synthesizer", marks=pytest.mark.nightly)])
def test_birth_places_has_variants_from_nothing_too(variant: str, born: Path, tmp_path: Path) -> None:
    given = {"writing_params_path": tmp_path / "q", "finetune_corpus_path": "birth_places_train.tsv"}
    birth("finetune", variant, born / "wiki.txt", epochs=1, **given)
    found = json.loads((tmp_path / "q/best/config.json").read_text())["heedful"]
    assert (found["position"], found["attention"]) == (
        ("rotary", "softmax") if variant == "rope" else ("learned", "synthesizer")
    )
    assert (found["n_layers"], found["n_heads"], found["d_model"], found["max_len"]) == (4, 8, 256, 128)
    text = birth(
        "evaluate", variant, born / "wiki.txt", reading_params_path=tmp_path / "q",
        eval_corpus_path=born / "birth_dev.tsv",
    )  # fmt: skip
    assert text.startswith("Correct: ")


def test_birth_places_without_files_are_the_worlds(born: Path, tmp_path: Path) -> None:
    to = ("--writing_params_path", tmp_path / "p")
    short = ("pretrain", "vanilla", "wiki.txt", *to, "--epochs", 1)
    text = run("birthplaces", "src/run.py", *short, **own_defaults(tmp_path, "[pretrain]\nsteps = 2\n"))
    assert "using world/birthplaces, which is generated" in text
    ends_well(text, tmp_path / "p")
    to = ("--writing_params_path", tmp_path / "n")
    said = run("birthplaces", "src/run.py", "pretrain", "vanilla", "no/wiki.txt", *to, status=2)
    assert "no/wiki.txt: there is no such file" in said
    short = ("pretrain", "vanilla", born / "wiki.txt", *to, "--budget-min", 0.0001)
    assert "--budget-min 0.0001: is over" in run("birthplaces", "src/run.py", *short, status=2)


def test_birth_places_shows_its_data_and_its_baseline() -> None:
    assert "⁇" in run("birthplaces", "src/dataset.py", "charcorruption")
    assert "x: Where was" in run("birthplaces", "src/dataset.py", "namedata")
    for words in ((), ("birth_dev.tsv",)):
        text = run("birthplaces", "src/london_baseline.py", *words)
        assert re.search(r"world/birthplaces, which is generated\nCorrect: \d+ out of \d+: [\d.]+%", text)
    assert "there is no such file" in run("birthplaces", "src/london_baseline.py", "no/dev.tsv", status=2)
    said = run("birthplaces", "src/dataset.py", "namedata", "--data", "none.tsv", status=2)
    assert "none.tsv: there is no such file" in said


def test_mini_gpt_is_torchs_attention() -> None:
    text = run("minigpt", "attention_experiments.py", "--oracle")
    found = re.findall(r"^(.*): largest difference (\S+)$", text, re.MULTILINE)
    assert [name for name, _ in found] == ["1 head", "1 head, causal", "3 heads, causal"]
    assert all(float(difference) < 1e-12 for _, difference in found)


def test_mini_gpt_compares_every_variant(born: Path, tmp_path: Path) -> None:
    lines = (born / "wiki.txt").read_text().splitlines()
    (tmp_path / "train.tokens").write_text("\n".join(lines[:50]) + "\n")
    (tmp_path / "dev.tokens").write_text("\n".join(lines[50:]) + "\n")
    words = ("--data", tmp_path / "train.tokens", "--dev", tmp_path / "dev.tokens", "--steps", 2)
    own = ("--sentences", "A sentence of mine.", "And another one.")
    one = own_defaults(tmp_path, "[study.attention]\nsamples = 1\n")
    text = run("minigpt", "attention_experiments.py", *words, *own, "--out", tmp_path / "o", **one)
    assert re.search(r"total tokens: [\d,]+, unique tokens: [\d,]+", text)
    for variant in ("softmax", "additive", "shared_qk", "shared_qkv", "zero_after", "zero_scores"):
        assert variant in text
    for column in ("seconds", "train perplexity", "dev perplexity", "a sample"):
        assert column in text
    answer = (tmp_path / "o" / "answer.json").read_text()
    for sentence in (
        "The quick brown fox jumps over the lazy dog.",
        "And another one.",
        "After learning lang",
    ):
        assert sentence in answer
    ends_well(text, tmp_path / "o")


def test_mini_gpt_without_its_file_reads_the_world(tmp_path: Path) -> None:
    words = ("--data", "1b_benchmark.train.tokens", "--dev", "1b_benchmark.dev.tokens", "--steps", 1)
    few = '[study.attention]\nsamples = 1\nattentions = "softmax"\nprojections = "separate"\nmasking = "before"\n'
    words += ("--batch_size", 2, "--out", tmp_path / "o")
    text = run("minigpt", "attention_experiments.py", *words, **own_defaults(tmp_path, few))
    assert "using world/birthplaces, generated" in text


@pytest.fixture(scope="session")
def sst2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences as the course has them."""
    folder = tmp_path_factory.mktemp("sst2")
    rows = [
        f"a {word} film number {i}\t{label}\n"
        for i in range(24)
        for word, label in (("dull", 0), ("fine", 1))
    ]
    for name, part in (("train", rows[:24]), ("dev", rows[24:36]), ("test", rows[36:])):
        (folder / f"{name}.tsv").write_text("sentence\tlabel\n" + "".join(part))
    return folder


@pytest.mark.parametrize("experiment", ["train", "optimizers", "same", "search"])
def test_sst2_does_each_of_its_experiments(
    stand_in: dict[str, str], experiment: str, sst2: Path, tmp_path: Path
) -> None:
    words = [
        "--model",
        "roberta-base",
        "--experiment",
        experiment,
        "--data_dir",
        sst2,
        "--out",
        tmp_path / "o",
    ]
    words += ["--epoch_choices", "1,2"] if experiment == "search" else ["--num_epochs", 1]
    text = run("sst2", "sst2.py", *words, **stand_in)
    names_its_stand_in(text, tmp_path / "o", "roberta-base")
    ends_well(text, tmp_path / "o")
    folders = [*(tmp_path / "o").glob("runs/*/results.json")]
    assert len(folders) >= {"train": 0, "optimizers": 9, "same": 3, "search": 4}[experiment]


def test_every_handout_is_short() -> None:
    for file in ROOT.rglob("*.py"):
        assert len(file.read_text().splitlines()) < 120, file.name
