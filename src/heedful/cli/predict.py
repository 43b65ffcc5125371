"""`heedful predict`: label texts with the best model of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from heedful.cli.output import Device, Flag, Json, console, print_json, print_table, show_loading
from heedful.errors import UserError, shorten
from heedful.options.types import OpenShare

if TYPE_CHECKING:
    from heedful.inference.abstention import AnswerRule
    from heedful.inference.files import LabeledFile, Labeler

SHOWN = 30
"""Largest number of labels to print; free answers can be many more."""


def command(
    run: Path,
    text: str | None = None,
    pair: str | None = None,
    /,
    *,
    source: Annotated[Path | None, Parameter(name="--in")] = None,
    out: Path | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    overwrite: Flag = False,
    strict: Flag = False,
    probabilities: Flag = False,
    raw_cells: Flag = False,
    min_confidence: OpenShare | None = None,
    max_risk: OpenShare | None = None,
    calibrate: Flag = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Label a text, a pair of texts or all rows of a file with the best model of a run.

    With --in and --out, the new file has all columns of the old one and two
    more, label and confidence (predicted_label and predicted_confidence if
    these names are taken); --probabilities adds one per label. A label that is
    a whole number is written without a fraction: 1 for 1.0. Files of any size
    are read row by row. A new file of the same kind (.csv) has the delimiter,
    encoding and line ends of the old one. A row whose text is empty gets no
    label. In .csv and .tsv, a cell that a spreadsheet would compute (=1+1)
    gets a ' before it.

    With --min-confidence or --max-risk, a text that the model is less sure
    about gets the label "not sure"; its confidence is kept.

    Examples:
      heedful predict runs/reviews "What a lovely place."
      heedful predict runs/boolq "is the sea salty" "Sea water is salt water."
      heedful predict runs/reviews --in reviews.csv --out labeled.csv
      heedful predict runs/reviews --in reviews.csv --out labeled.parquet --probabilities
      heedful predict runs/reviews --in reviews.csv --out labeled.csv --max-risk 0.05
      heedful predict runs/birthplaces "Where was Ada Lovelace born?"

    Parameters
    ----------
    run
        Folder of a run, a study or what heedful export wrote, or a classifier of transformers: a folder or a
        Hub id.
    text
        The text to label.
    pair
        The second text, if the task has pairs.
    source
        File of texts to read: .csv, .tsv, .jsonl, .parquet, .arrow, .xlsx or .txt, also compressed (.csv.gz).
    out
        File to write: .csv, .tsv, .jsonl or .parquet.
    text_column
        Name of the column with the text. By default found by name or content.
    pair_column
        Name of the column with the second text of a pair.
    overwrite
        Replace --out.
    strict
        Refuse a file with bad rows instead of skipping them.
    probabilities
        Also write a column per label with its probability.
    raw_cells
        Leave cells of .csv and .tsv files as they are, even those that a spreadsheet would compute.
    min_confidence
        Answer "not sure" below this confidence.
    max_risk
        Answer "not sure" as often as is needed to keep the share of wrong answers at or below this. The
        threshold is chosen on the run's dev rows, so that the share holds with 95 % confidence on texts like
        them; refused if they are too few.
    calibrate
        Calibrate the probabilities on the run's dev rows by a temperature.
    """
    if (text is None) == (source is None):
        raise UserError("predict labels one text, or a file with --in FILE --out FILE; give one of them")
    if (source is None) != (out is None):
        raise UserError("--in and --out belong together: a file to read and a file to write")
    needs_dev = calibrate or max_risk is not None
    with show_loading(f"loading {run}"):
        from heedful.inference.files import Labeler
        from heedful.inference.loading import load_run, load_with_held_out_rows

        predictor = (load_with_held_out_rows if needs_dev else load_run)(run, device=device)
    rule = predictor.answer_rule(min_confidence=min_confidence, max_risk=max_risk, calibrate=calibrate)
    labeler = Labeler(run, predictor, rule)
    if not json:
        for sentence in rule.sentences:
            console().print(sentence, markup=False)
    if source is None or out is None:
        assert text is not None
        show_one(labeler, text, pair, json)
        return
    done = labeler.label_file(
        source,
        out,
        text_column=text_column,
        pair_column=pair_column,
        overwrite=overwrite,
        strict=strict,
        probabilities=probabilities,
        raw_cells=raw_cells,
    )
    if labeler.predictor.kind in ("labels", "number"):
        show_file(done, out, json)
        return
    label, confidence, *more = done.columns
    if json:
        facts = {"out": str(out), "rows": done.rows, "counts": done.counts, "columns": list(done.columns)}
        print_json({**facts, "label_column": label, "confidence_column": confidence, **rule_facts(rule)})
        return
    most = sorted(done.counts, key=lambda name: -done.counts[name])[:SHOWN]
    counts = [(shorten(name), n) for name, n in done.counts.items() if name in most]
    if len(done.counts) > SHOWN:
        counts.append((f"{len(done.counts) - SHOWN:,} others", done.rows - sum(n for _, n in counts)))
    rows = [(name, f"{n:,}", f"{n / max(1, done.rows):.1%}") for name, n in counts]
    print_table("labels", ("label", "rows", "share"), rows, right=("rows", "share"))
    rest = f", and {len(more):,} columns of probabilities" if more else ""
    console().print(f"{out}: {done.rows:,} rows, with {label} and {confidence}{rest}", markup=False)


def show_file(done: LabeledFile, out: Path, json: bool) -> None:
    """Print what was written, for several labels per text and for numbers."""
    if json:
        facts = {"out": str(out), "rows": done.rows, "counts": done.counts}
        print_json({**facts, "columns": list(done.columns)})
        return
    if done.counts:
        most = sorted(done.counts.items(), key=lambda item: -item[1])[:SHOWN]
        rows = [(shorten(name), f"{n:,}", f"{n / max(1, done.rows):.1%}") for name, n in most]
        print_table("labels", ("label", "rows", "share"), rows, right=("rows", "share"))
    added = ", ".join(shorten(name, 30) for name in done.columns[:SHOWN])
    more = f" and {len(done.columns) - SHOWN} more" if len(done.columns) > SHOWN else ""
    console().print(f"{out}: {done.rows:,} rows, with {added}{more}", markup=False)


def rule_facts(rule: AnswerRule | None) -> dict[str, Any]:
    if rule is None or not (rule.threshold or rule.sentences):
        return {}
    return {"threshold": rule.threshold, "temperature": rule.temperature, "sentences": list(rule.sentences)}


def show_one(labeler: Labeler, text: str, pair: str | None, json: bool) -> None:
    from heedful.inference.abstention import NOT_SURE
    from heedful.inference.predictions import PredictedLabels, PredictedNumber

    answer = labeler.label_text(text, pair)
    if isinstance(answer, PredictedNumber):
        if json:
            print_json({"value": answer.value})
        else:
            console().print(answer.label, markup=False)
        return
    if isinstance(answer, PredictedLabels):
        if json:
            print_json({"labels": list(answer.labels), "probabilities": answer.probabilities})
            return
        console().print(f"labels: {', '.join(map(shorten, answer.labels)) or 'none'}", markup=False)
    if json:
        facts = {"label": answer.label, "confidence": answer.confidence}
        print_json({**facts, "probabilities": answer.probabilities, **rule_facts(labeler.rule)})
        return
    if answer.label == NOT_SURE:
        console().print(NOT_SURE, markup=False)
    for name, probability in sorted(answer.probabilities.items(), key=lambda item: -item[1]):
        console().print(f"{probability:.3f}  {shorten(name)}", markup=False)
