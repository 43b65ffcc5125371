"""Writes docs/results.md from the results of named runs and benchmarks; nothing in it is written by hand.

    python scripts/results.py                     write docs/results.md (`make results`)
    python scripts/results.py collect RUN...      take finished runs, studies and benchmarks into docs/results
    python scripts/results.py missing             the commands of all that is not measured yet, for a shell

docs/results/index.toml says what is shown and with which command it was made; docs/results/NAME/ holds the
files of the run or study NAME that the rows are read from. What has not been measured is listed as such.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from heedful.report.markdown import escape_markdown
from heedful.runs.schemas import in_short

ROOT = Path(__file__).parents[1]
HERE = ROOT / "docs" / "results"
KEPT = ("results.json", "checks.json", "config.toml", "env.json", "study.json", "answer.json")


def main(words: list[str]) -> int:
    """Collect, list what is missing, or write."""
    if words[:1] == ["collect"] and words[1:]:
        lacking = [said for folder in words[1:] if (said := collect(Path(folder)))]
        print("\n".join(lacking), end="\n" if lacking else "", file=sys.stderr)
        return 1 if lacking else 0
    if words not in ([], ["missing"]):
        print(__doc__, file=sys.stderr)
        return 2
    index = tomllib.loads((HERE / "index.toml").read_text("utf-8"))
    if words:
        print(missing(index), end="")
    else:
        (ROOT / "docs" / "results.md").write_text(page(index), "utf-8")
    return 0


def collect(source: Path) -> str | None:
    """Keep what the rows are read from: small files, never weights or data. Gives what is wrong with it."""
    if source.suffix == ".json":
        shutil.copy(source, HERE / source.name)
        return None
    found = [name for name in KEPT if (source / name).is_file()]
    if "results.json" not in found and "answer.json" not in found:
        return f"{source}: has no results yet"
    if "answer.json" in found and not json.loads((source / "answer.json").read_text("utf-8"))["finished"]:
        return f"{source}: the study is not finished; its command continues it"
    (HERE / source.name).mkdir(parents=True, exist_ok=True)
    for name in found:
        shutil.copy(source / name, HERE / source.name / name)
    return None


def page(index: dict[str, Any]) -> str:
    """The whole document."""
    parts = [f"# {index['title']}", index["text"].strip()]
    for section in index["section"]:
        parts += [f"## {section['title']}", section.get("text", "").strip()]
        rows = [row for row in section.get("row", []) if all(map(measured, row["runs"]))]
        lacking = [row for row in section.get("row", []) if row not in rows]
        form = section.get("form", "classification")
        if rows:
            parts.append(FORMS[form](rows))
        if "benchmark" in section:
            parts.append(benchmark(HERE / section["benchmark"]))
        if "output" in section:
            parts.append("```\n" + (HERE / section["output"]).read_text("utf-8").strip() + "\n```")
        if rows and form != "studies":  # where each has its command beside it
            parts.append(commands(rows))
        if lacking:
            parts.append(f"Not measured yet: {'; '.join(row['label'] for row in lacking)}.")
        parts.append(section.get("after", "").strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def measured(name: str) -> bool:
    """Whether a run or a study is there."""
    return any((HERE / name / file).is_file() for file in ("results.json", "answer.json"))


def missing(index: dict[str, Any]) -> str:
    """A shell script that makes what is not measured yet, and then writes the page."""
    lines, made = (
        ["# HEEDFUL_DATA names the folder of the data sets; a command that was stopped goes on."],
        [],
    )
    for section in index["section"]:
        for row in section.get("row", []):
            names = [name for name in row["runs"] if not measured(name)]
            if names:
                lines += ["", f"# {section['title']}: {row['label']}"]
            for name in names:
                own = one_run(row, name)
                made.append(re.findall(r"--out (\S+)", own[-1])[-1])
                lines += own
        if "benchmark" in section and not (HERE / section["benchmark"]).is_file():
            module = Path(section["benchmark"]).stem
            lines += ["", f"# {section['title']}; wants a quiet machine"]
            lines.append(f"python -m benchmarks.{module} --out docs/results/{section['benchmark']}")
    if made:
        lines += ["", f"python scripts/results.py collect {' '.join(made)}"]
    return "\n".join([*lines, "python scripts/results.py"]) + "\n"


def one_run(row: dict[str, Any], name: str) -> list[str]:
    """The commands that make one run of a row, the last one into a folder of its name."""
    lines = [re.sub(r"\s+#.*", "", line) for line in row["command"].strip().splitlines()]
    if len(row["runs"]) > 1:
        seed = re.search(r"-s(\d+)$", name)
        if seed is None or not all("--seed " in line for line in lines):
            sys.exit(f"{row['label']}: of several runs each is named -sSEED and the command has --seed")
        lines = [re.sub(r"--seed \d+", f"--seed {seed[1]}", line) for line in lines]
    if "--out " not in lines[-1]:
        lines[-1] += f" --out {'studies' if lines[-1].startswith('heedful study') else 'runs'}/{name}"
    elif not lines[-1].endswith(f"/{name}"):
        sys.exit(f"{row['label']}: its command ends with --out and a folder that is not called {name}")
    return [line if line.startswith("heedful study") else f"{line} --resume" for line in lines]


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
        "findings of its checks",
        "published results",
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
        row.get("published", ""),
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
    """Language models: perplexities belong to a vocabulary, bits per character can be compared."""
    head = [
        "what",
        "parameters",
        "dev perplexity",
        "test perplexity",
        "bits per character",
        "unknown tokens",
        "minutes",
    ]
    found = []
    for row in rows:
        runs = [read(name) for name in row["runs"]]
        last = [run["splits"].get("test") or run["splits"]["dev"] for run in runs]
        bits, unknown = (
            [one[key] for one in last if one.get(key) is not None]
            for key in ("bits_per_character", "unknown_rate")
        )
        found.append(
            [
                row["label"],
                f"{runs[0]['total_parameters']:,}",
                value(runs, "dev", ".2f"),
                value(runs, "test", ".2f"),
                f"{mean(bits):.3f}" if bits else "",
                f"{mean(unknown):.1%}" if unknown else "",
                f"{mean(run['seconds'] for run in runs) / 60:.1f}",
            ]
        )
    return table(head, found)


def studies(rows: list[dict[str, Any]]) -> str:
    """Each study under a heading of its own: its answer in words, its warnings, its tables, its command.

    `tables` of a row says how many of the study's tables are shown, the most important first; all by default.
    """
    parts = []
    for row in rows:
        parts.append(f"### {row['label']}")
        for answer in (read(name, "answer.json") for name in row["runs"]):
            said = [note["text"] for note in answer["notes"] if note["text"] not in answer["summary"]]
            parts += [
                escape_markdown(" ".join(answer["summary"])),
                *(f"> {escape_markdown(text)}" for text in said),
            ]
            for one in answer["tables"][: row.get("tables")]:
                parts += [escape_markdown(one["title"][:1].upper() + one["title"][1:]), study_table(one)]
        parts.append(commands([row]))
    return "\n\n".join(part for part in parts if part)


def study_table(found: dict[str, Any]) -> str:
    """One table of an answer; columns of numbers stand to the right."""
    columns, rows = found["columns"], found["rows"]
    right = [any(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    head = [list(map(escape_markdown, columns)), ["---:" if side else "---" for side in right]]
    body = [[cell(*pair) for pair in zip(columns, row, strict=True)] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in [*head, *body])


def cell(column: str, found: Any) -> str:
    """A cell as text; text is from data, and no markup."""
    if found is None:
        return ""
    if isinstance(found, int):
        return f"{found:,}"
    if not isinstance(found, float):
        return escape_markdown(str(found))
    if "perplexity" in column:
        return f"{found:,.1f}"
    plain = column in ("learning rate", "epoch", "seconds", "mlm weight") or (found and abs(found) < 1e-3)
    return f"{found:g}" if plain else f"{found:.3f}"


FORMS = {
    "classification": classification,
    "answers": answers,
    "perplexity": perplexity,
    "studies": studies,
}


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
    """What the checks that warned or failed found, in short."""
    found = {
        in_short(check["name"])
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
