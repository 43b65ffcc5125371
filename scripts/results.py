"""Write docs/results.md from the results of runs, studies and benchmarks. Do not edit that page by hand.

    python scripts/results.py                     write docs/results.md (`make results`)
    python scripts/results.py collect RUN...      copy finished runs, studies and benchmarks to docs/results
    python scripts/results.py missing             print a shell script that runs what is missing

docs/results/index.toml has the sections, their text, and the command of each row. docs/results/NAME/ has the
files of the run or study NAME that its row is read from. Rows without results are listed as not measured.
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
from heedful.runs.schemas import summarize_check

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks import contrastive, solve, solve_promises  # noqa: E402
from benchmarks.settings import read_ledger, show_tables  # noqa: E402

HERE = ROOT / "docs" / "results"
COLLECTED = ("results.json", "checks.json", "config.toml", "env.json", "study.json", "answer.json")


def main(words: list[str]) -> int:
    """Run the subcommand and return the exit status."""
    if words[:1] == ["collect"] and words[1:]:
        problems = [problem for folder in words[1:] if (problem := collect(Path(folder)))]
        print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
        return 1 if problems else 0
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
    """Copy the small files that rows are read from, never weights or data. Return a problem, if any."""
    if source.suffix == ".json":
        shutil.copy(source, HERE / source.name)
        return None
    present = [name for name in COLLECTED if (source / name).is_file()]
    if "results.json" not in present and "answer.json" not in present:
        return f"{source}: has no results yet"
    if "answer.json" in present and not json.loads((source / "answer.json").read_text("utf-8"))["finished"]:
        return f"{source}: the study is not finished; run its command again to continue it"
    (HERE / source.name).mkdir(parents=True, exist_ok=True)
    for name in present:
        shutil.copy(source / name, HERE / source.name / name)
    return None


def page(index: dict[str, Any]) -> str:
    """Return the whole document."""
    parts = [f"# {index['title']}", index["text"].strip()]
    for section in index["section"]:
        parts += [f"## {section['title']}", section.get("text", "").strip()]
        rows = [row for row in section.get("row", []) if all(map(is_measured, row["runs"]))]
        unmeasured = [row for row in section.get("row", []) if row not in rows]
        form = section.get("form", "classification")
        if rows:
            parts.append(FORMS[form](rows))
        if "benchmark" in section:
            parts.append(benchmark(HERE / section["benchmark"]))
        if "settings" in section:
            parts.append(show_tables(read_ledger(HERE / section["settings"])))
        if "contrastive" in section:
            parts.append(contrastive.show_tables(read_ledger(HERE / section["contrastive"])))
        for name, ledger in (("solve", solve), ("promises", solve_promises)):
            if name in section and (HERE / section[name]).is_file():
                parts.append(ledger.show_tables(read_ledger(HERE / section[name])))
        if "output" in section:
            parts.append("```\n" + (HERE / section["output"]).read_text("utf-8").strip() + "\n```")
        if rows and form != "studies":  # a study's command is below its own tables
            parts.append(commands(rows))
        if unmeasured:
            parts.append(f"Not measured yet: {'; '.join(row['label'] for row in unmeasured)}.")
        parts.append(section.get("after", "").strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def is_measured(name: str) -> bool:
    """Whether the results of a run or study are in docs/results."""
    return any((HERE / name / file).is_file() for file in ("results.json", "answer.json"))


def missing(index: dict[str, Any]) -> str:
    """Return a shell script that runs all unmeasured rows and then writes the page."""
    lines = ["# HEEDFUL_DATA names the folder of the data sets. A command that was stopped continues."]
    folders = []
    for section in index["section"]:
        for row in section.get("row", []):
            names = [name for name in row["runs"] if not is_measured(name)]
            if names:
                lines += ["", f"# {section['title']}: {row['label']}"]
            for name in names:
                run_lines = run_commands(row, name)
                folders.append(re.findall(r"--out (\S+)", run_lines[-1])[-1])
                lines += run_lines
        if "benchmark" in section and not (HERE / section["benchmark"]).is_file():
            module = Path(section["benchmark"]).stem
            lines += ["", f"# {section['title']}; needs an idle machine"]
            lines.append(f"python -m benchmarks.{module} --out docs/results/{section['benchmark']}")
    if folders:
        lines += ["", f"python scripts/results.py collect {' '.join(folders)}"]
    return "\n".join([*lines, "python scripts/results.py"]) + "\n"


def run_commands(row: dict[str, Any], name: str) -> list[str]:
    """Return the commands of one run of a row; the last one writes to a folder with the run's name."""
    lines = [re.sub(r"\s+#.*", "", line) for line in row["command"].strip().splitlines()]
    if len(row["runs"]) > 1:
        seed = re.search(r"-s(\d+)$", name)
        if seed is None or not all("--seed " in line for line in lines):
            sys.exit(f"{row['label']}: with several runs, name each -sSEED and put --seed in the command")
        lines = [re.sub(r"--seed \d+", f"--seed {seed[1]}", line) for line in lines]
    if "--out " not in lines[-1]:
        lines[-1] += f" --out {'studies' if lines[-1].startswith('heedful study') else 'runs'}/{name}"
    elif not lines[-1].endswith(f"/{name}"):
        sys.exit(f"{row['label']}: the folder after --out must be named {name}")
    return [line if line.startswith("heedful study") else f"{line} --resume" for line in lines]


def read(name: str, file: str = "results.json") -> dict[str, Any]:
    contents: dict[str, Any] = json.loads((HERE / name / file).read_text("utf-8"))
    return contents


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table whose columns, except the first, are aligned to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def classification(rows: list[dict[str, Any]]) -> str:
    """Return a table of accuracies and baselines, with mean and standard deviation for several seeds."""
    head = [
        "what",
        "trained parameters",
        "dev",
        "test",
        "majority",
        "bag of words",
        "minutes",
        "findings of the checks",
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
    head = ["what", "parameters", "dev exact match", "always the same answer", "minutes"]
    lines = []
    for row in rows:
        runs = [read(name) for name in row["runs"]]
        constant = (runs[0]["splits"]["dev"].get("baselines") or {}).get("constant_answer")
        minutes = mean(run["seconds"] for run in runs) / 60
        same = "" if constant is None else f"{constant:.3f}"
        lines.append(
            [row["label"], f"{runs[0]['total_parameters']:,}", value(runs, "dev"), same, f"{minutes:.1f}"]
        )
    return table(head, lines)


def perplexity(rows: list[dict[str, Any]]) -> str:
    head = [
        "what",
        "parameters",
        "dev perplexity",
        "test perplexity",
        "bits per character",
        "unknown tokens",
        "minutes",
    ]
    lines = []
    for row in rows:
        runs = [read(name) for name in row["runs"]]
        scores = [run["splits"].get("test") or run["splits"]["dev"] for run in runs]
        bits, unknown = (
            [score[key] for score in scores if score.get(key) is not None]
            for key in ("bits_per_character", "unknown_rate")
        )
        lines.append(
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
    return table(head, lines)


def studies(rows: list[dict[str, Any]]) -> str:
    """Return a section per study: its answer, its warnings, its tables and its command.

    The key `tables` of a row limits how many of the study's tables are shown; the default is all.
    """
    parts = []
    for row in rows:
        parts.append(f"### {row['label']}")
        for answer in (read(name, "answer.json") for name in row["runs"]):
            notes = [note["text"] for note in answer["notes"] if note["text"] not in answer["summary"]]
            parts += [
                escape_markdown(" ".join(answer["summary"])),
                *(f"> {escape_markdown(text)}" for text in notes),
            ]
            for one in answer["tables"][: row.get("tables")]:
                parts += [escape_markdown(one["title"][:1].upper() + one["title"][1:]), study_table(one)]
        parts.append(commands([row]))
    return "\n\n".join(part for part in parts if part)


def study_table(source: dict[str, Any]) -> str:
    """Return one table of an answer; columns of numbers are aligned to the right."""
    columns, rows = source["columns"], source["rows"]
    right = [any(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    head = [list(map(escape_markdown, columns)), ["---:" if side else "---" for side in right]]
    body = [[cell(*pair) for pair in zip(columns, row, strict=True)] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in [*head, *body])


def cell(column: str, content: Any) -> str:
    """Format a cell; text is escaped, because it may come from data."""
    if content is None:
        return ""
    if isinstance(content, int):
        return f"{content:,}"
    if not isinstance(content, float):
        return escape_markdown(str(content))
    if "perplexity" in column:
        return f"{content:,.1f}"
    is_setting = column in ("learning rate", "epoch", "seconds", "mlm weight")
    return f"{content:g}" if is_setting or (content and abs(content) < 1e-3) else f"{content:.3f}"


FORMS = {
    "classification": classification,
    "answers": answers,
    "perplexity": perplexity,
    "studies": studies,
}


def value(runs: list[dict[str, Any]], split: str, form: str = ".3f") -> str:
    """Format a score with its interval; for several seeds, the mean, standard deviation and each value."""
    scores = [run["splits"][split] for run in runs if split in run["splits"]]
    values = [score["value"] for score in scores if score["value"] is not None]
    if not values:
        return ""
    if len(values) > 1:
        each = ", ".join(f"{v:{form}}" for v in values)
        return f"**{mean(values):{form}}** ± {stdev(values):{form}} ({each})"
    interval = scores[0].get("ci95")
    in_parentheses = (
        f" ({interval[0]:{form}} to {interval[1]:{form}})" if interval and None not in interval else ""
    )
    return f"**{values[0]:{form}}**{in_parentheses}"


def findings(names: list[str]) -> str:
    """Return short names of the checks that warned or failed."""
    names_in_short = {
        summarize_check(check["name"])
        for name in names
        if (HERE / name / "checks.json").is_file()
        for check in read(name, "checks.json")["checks"]
        if check["status"] in ("warning", "failed")
    }
    return ", ".join(sorted(names_in_short))


def benchmark(path: Path) -> str:
    """Return the table of a benchmark's output file."""
    if not path.is_file():
        return f"Not measured yet: `{path.name}`."
    output = json.loads(path.read_text("utf-8"))
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
        for row in output["rows"]
    ]
    return f"{table(head, rows)}\n\n`{output['command']}`, medians of {output['turns']} turns."


def commands(rows: list[dict[str, Any]]) -> str:
    """Return a code block with the commands of the rows, without repetitions."""
    lines = [line for row in rows for line in row["command"].strip().splitlines()]
    return "```\n" + "\n".join(dict.fromkeys(lines)) + "\n```"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
