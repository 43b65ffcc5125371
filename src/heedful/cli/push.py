"""`heedful push`: upload the best model of a run to the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.output import Flag, Json, console, print_json, print_table

if TYPE_CHECKING:
    from heedful.inference.push import Upload


def command(
    run: Path,
    name: str,
    /,
    *,
    merge: Flag = False,
    public: Flag = False,
    dry_run: Flag = False,
    json: Json = False,
) -> None:
    """Upload the best model of a run to the Hub, with a model card.

    What is uploaded is the folder that heedful export writes, and a card with
    scores, intervals, baselines, failed checks and the command; the list is
    printed first. The data, predictions and logs stay here. A linear model
    holds the words of the training texts as its terms.

    Examples:
      heedful push runs/sst2 ada/sst2-minilm --dry-run
      heedful push runs/sst2-lora ada/sst2 --merge --public

    Parameters
    ----------
    run
        Folder of a finished run.
    name
        The repository, as owner/name; it is created if it is not there.
    merge
        Upload one plain model instead of an adapter.
    public
        Create the repository for everybody. By default only you see it.
    dry_run
        Print what would be uploaded, and send nothing.
    """
    from heedful.inference.push import push_run

    def announce(upload: Upload) -> None:
        if not json:
            rows = [(file, f"{size / 1e6:.2f}") for file, size in upload.files]
            seen_by = "only you" if upload.private else "everybody"
            print_table(f"{upload.name}, for {seen_by} if it is new", ("file", "MB"), rows, right=("MB",))
        told.append(upload)

    told: list[Upload] = []
    address = push_run(run, name, announce, merge=merge, private=not public, dry_run=dry_run)
    if json:
        files = [file for file, _ in told[0].files]
        print_json({"name": name, "files": files, "loads_with": told[0].loads_with, "address": address})
    elif address is None:
        console().print("nothing was sent (--dry-run)", markup=False)
    else:
        console().print(f"{run}: uploaded to {address}", markup=False)
