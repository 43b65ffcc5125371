"""One of the processes that `heedful.launch.processes` starts: `python -m heedful.launch.worker FOLDER`."""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from heedful.launch.rank_environment import LAUNCHED
from heedful.logs import print_messages
from heedful.training.signals import StoppedError, stop_with_parent

OPTIONS, STOP = "options.json", "stop"
"""Files of the command in the folder: the options, and a note that stops workers which start late."""
LOOPBACK = ("lo", "lo0")


def main(folder: Path) -> int:
    """Train with the options in the folder, and write a report of how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until there is something to save
    rank, parent = os.environ["RANK"], os.getppid()
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
    if (folder / STOP).is_file():
        return 1
    stop_with_parent(parent)
    for name in LOOPBACK:
        if name in (interface for _, interface in socket.if_nameindex()):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)  # a laptop's host name may lead anywhere
    os.environ[LAUNCHED] = "1"
    with print_messages():
        status, report = attempt(folder)
    from heedful.runs.files import write_json

    write_json(folder / f"{rank}.json", report)
    return status


def attempt(folder: Path) -> tuple[int, dict[str, Any]]:
    """Train, and return a status for torch's launcher, which ends the others if it is not 0, and a report."""
    from heedful.errors import UserError
    from heedful.launch.processes import launch_training
    from heedful.options.configuration import COMMANDS, check_table
    from heedful.runs.json_files import read_json
    from heedful.training.ranks import LostError

    try:
        request = read_json(folder / OPTIONS)
        kind = COMMANDS[request["command"]]
        launch_training(kind(**check_table(kind, request["options"], "options")))
    except StoppedError as stopped:
        by = stopped.by or signal.SIGTERM
        return 0, {"kind": "stopped", "message": str(stopped), "by": by.name}
    except LostError as lost:
        return 1, {"kind": "lost", "message": str(lost)}
    except UserError as mistake:
        return 1, {"kind": "mistake", "message": str(mistake)}
    except KeyboardInterrupt:
        return 1, {"kind": "interrupted"}
    except Exception as failure:
        traceback.print_exc()
        return 1, {"kind": "failure", "message": f"{type(failure).__name__}: {failure}"}
    return 0, {"kind": "done"}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
