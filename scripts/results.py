"""Writes docs/results.md from the results of named runs and benchmarks; nothing in it is written by hand.

    python scripts/results.py                     write docs/results.md (`make results`)
    python scripts/results.py collect RUN...      take finished runs, studies and benchmarks into docs/results

docs/results/index.toml says what is shown and with which command it was made; docs/results/NAME/ holds the
files of the run NAME that the rows are read from. What has not been measured is listed as such.
"""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from pathlib import Path
from statistics import mean, stdev
from typing import Any

ROOT = Path(__file__).parents[1]
HERE = ROOT / "docs" / "results"
KEPT = ("results.json", "checks.json", "config.toml", "env.json", "study.json", "answer.json")


def main(words: list[str]) -> int:
    """Collect, or write."""
    if words[:1] == ["collect"] and words[1:]:
        for folder in words[1:]:
            collect(Path(folder))
        return 0
    if words:
        print(__doc__, file=sys.stderr)
        return 2
    text = page(tomllib.loads((HERE / "index.toml").read_text("utf-8")))
    (ROOT / "docs" / "results.md").write_text(text, "utf-8")
    return 0


def collect(source: Path) -> None:
    """Keep what the rows are read from: small files, never weights or data."""
    if source.suffix == ".json":
        shutil.copy(source, HERE / source.name)
        return
    found = [name for name in KEPT if (source / name).is_file()]
    if "results.json" not in found and "answer.json" not in found:
        sys.exit(f"{source}: has no results yet")
    (HERE / source.name).mkdir(parents=True, exist_ok=True)
    for name in found:
        shutil.copy(source / name, HERE / source.name / name)


def page(index: dict[str, Any]) -> str:
    """The whole document."""
    parts = [f"# {index['title']}", index["text"].strip()]
    for section in index["section"]:
        parts += [f"## {section['title']}", section.get("text", "").strip()]
        rows = [row for row in section.get("row", []) if measured(row["runs"])]
        missing = [row for row in section.get("row", []) if not measured(row["runs"])]
        if rows:
            parts.append(FORMS[section.get("form", "classification")](rows))
        if "benchmark" in section:
            parts.append(benchmark(HERE / section["benchmark"]))
        if "output" in section:
            parts.append("```\n" + (HERE / section["output"]).read_text("utf-8").strip() + "\n```")
        if rows:
            parts.append(commands(rows))
        if missing:
            parts.append(f"Not measured yet: {'; '.join(row['label'] for row in missing)}.")
        parts.append(section.get("after", "").strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def measured(names: list[str]) -> bool:
    """Whether every run of a row is there."""
    return all((HERE / name / "results.json").is_file() for name in names)


def read(name: str, file: str = "results.json") -> dict[str, Any]:
    """One file of a run."""
    found: dict[str, Any] = json.loads((HERE / name / file).read_text("utf-8"))
    return found


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown; all but the first column are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def classification(rows: list[dict[str, Any]]) -> str:
    """Accuracies beside their baselines; of several seeds the mean and the standard deviation."""
    head = [
        "what",
        "trained parameters",
        "dev",
        "test",
        "majority",
        "bag of words",
        "minutes",
        "found by its own checks",
    ]
    return table(head, [classification_row(row) for row in rows])


def classification_row(row: dict[str, Any]) -> list[str]:
    runs = [read(name) for name in row["runs"]]
    last = runs[0]["splits"].get("test") or runs[0]["splits"]["dev"]
    simple = last.get("baselines") or {}
    return [
        row["label"],
        f"{runs[0]['trainable_parameters']:,}",
        value(runs, "dev"),
        value(runs, "test"),
        *(f"{simple[name]:.3f}" if name in simple else "" for name in ("majority", "bag_of_words")),
        f"{mean(run['seconds'] for run in runs) / 60:.1f}",
        findings(row["runs"]),
    ]


def answers(rows: list[dict[str, Any]]) -> str:
    """Exact matches."""
    head = ["what", "parameters", "dev exact match", "always the same answer", "minutes"]
    found = []
    for row in rows:
        runs = [read(name) for name in row["runs"]]
        constant = (runs[0]["splits"]["dev"].get("baselines") or {}).get("constant_answer")
        minutes = mean(run["seconds"] for run in runs) / 60
        same = "" if constant is None else f"{constant:.3f}"
        found.append(
            [row["label"], f"{runs[0]['total_parameters']:,}", value(runs, "dev"), same, f"{minutes:.1f}"]
        )
    return table(head, found)


def perplexity(rows: list[dict[str, Any]]) -> str:
    """Perplexities."""
    head = ["what", "parameters", "dev perplexity", "test perplexity", "minutes"]
    found = []
    for row in rows:
        runs = [read(name) for name in row["runs"]]
        minutes = mean(run["seconds"] for run in runs) / 60
        found.append(
            [
                row["label"],
                f"{runs[0]['total_parameters']:,}",
                value(runs, "dev", ".1f"),
                value(runs, "test", ".1f"),
                f"{minutes:.1f}",
            ]
        )
    return table(head, found)


FORMS = {"classification": classification, "answers": answers, "perplexity": perplexity}


def value(runs: list[dict[str, Any]], split: str, form: str = ".3f") -> str:
    """A score with its interval; of several seeds the mean, its deviation and the seeds."""
    found = [run["splits"][split] for run in runs if split in run["splits"]]
    values = [one["value"] for one in found if one["value"] is not None]
    if not values:
        return ""
    if len(values) > 1:
        each = ", ".join(f"{v:{form}}" for v in values)
        return f"**{mean(values):{form}}** ± {stdev(values):{form}} ({each})"
    interval = found[0].get("ci95")
    whole = f" ({interval[0]:{form}} to {interval[1]:{form}})" if interval and None not in interval else ""
    return f"**{values[0]:{form}}**{whole}"


def findings(names: list[str]) -> str:
    """The names of the checks that warned or failed."""
    found = {
        check["name"].replace("_", " ")
        for name in names
        if (HERE / name / "checks.json").is_file()
        for check in read(name, "checks.json")["checks"]
        if check["status"] in ("warning", "failed")
    }
    return ", ".join(sorted(found))


def benchmark(path: Path) -> str:
    """What a benchmark wrote with --out."""
    if not path.is_file():
        return f"Not measured yet: `{path.name}`."
    found = json.loads(path.read_text("utf-8"))
    head = [
        "case",
        "against",
        "times faster",
        "goal",
        "CPU time, times",
        "seconds",
        "theirs",
        "share of the roof",
    ]
    rows = [
        [
            row["case"],
            row["against"],
            f"{row['times']:.2f}",
            f"{row['goal']:g}" if row.get("goal") else "",
            f"{row['cpu_times']:.2f}",
            f"{row['seconds']:.1f}",
            f"{row['their_seconds']:.1f}",
            f"{row['roof']:.0%}" if row.get("roof") else "",
        ]
        for row in found["rows"]
    ]
    return f"{table(head, rows)}\n\n`{found['command']}`, medians of {found['turns']} turns."


def commands(rows: list[dict[str, Any]]) -> str:
    """The commands, in the order of the rows."""
    lines = [line for row in rows for line in row["command"].strip().splitlines()]
    return "```\n" + "\n".join(dict.fromkeys(lines)) + "\n```"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
