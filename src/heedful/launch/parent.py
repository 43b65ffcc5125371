"""A child process stops when the process that started it is gone."""

from __future__ import annotations

import os
import signal
import threading
import time

POLL_SECONDS = 1.0


def stop_with_parent(parent: int) -> None:
    """Send this process SIGTERM when `parent` is no longer its parent: nobody forwards signals to it."""

    def watch_parent() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch_parent, name="parent", daemon=True).start()
