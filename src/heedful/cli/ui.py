"""`heedful ui`: the studio, in a browser."""

from __future__ import annotations

import sys
from pathlib import Path

from heedful.cli.output import Flag, Json, console, print_json


def command(
    folder: Path = Path(),
    /,
    *,
    port: int = 8766,
    host: str = "127.0.0.1",
    no_token: Flag = False,
    no_open: Flag = False,
    json: Json = False,
) -> None:
    """Open the studio: runs, models and attention, in a browser.

    The studio shows the runs and studies below a folder while they are made,
    and lets you try their models. It works offline, listens on this machine
    alone unless --host says otherwise, and answers who has opened the printed
    link ($HEEDFUL_TOKEN sets its token). Ctrl-C stops it.

    Examples:
      heedful ui
      heedful ui runs --port 9000 --no-open
      ssh -L 8766:127.0.0.1:8766 machine heedful ui work --no-open

    Parameters
    ----------
    folder
        Folder whose runs and studies are shown; pages cannot read or write outside of it.
    port
        Port to listen on; 0 is any free one.
    host
        Address to listen on. Others than 127.0.0.1 can be reached from other machines, without encryption.
    no_token
        Answer everybody on this machine; only with the default --host.
    no_open
        Only print the link, do not open a browser.
    json
        Print the address and the token as one JSON object, and open no browser.
    """
    from heedful.studio.serving import StudioAddress, run_studio

    def announce(address: StudioAddress) -> None:
        if json:
            print_json(
                {"url": address.url, "link": address.link, "port": address.port, "token": address.token}
            )
        else:
            console().print(f"The studio is at {address.link} (Ctrl-C stops)", markup=False, soft_wrap=True)
        sys.stdout.flush()  # a program that reads it waits for it
        if not (no_open or json):
            open_browser(address.link)

    run_studio(folder, port=port, host=host, needs_token=not no_token, announce=announce)


def open_browser(link: str) -> None:
    """Open a link in the user's browser where there is a screen, without waiting for it."""
    import os
    import threading
    import webbrowser

    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return
    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
