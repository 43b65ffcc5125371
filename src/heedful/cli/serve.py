"""`heedful serve`: answer requests with a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from heedful.cli.output import Device, Flag, Json, console, print_json

Milliseconds = Annotated[float, Parameter(validator=Number(gte=0, lte=100))]
Count = Annotated[int, Parameter(validator=Number(gte=1))]


def command(
    model: Path,
    /,
    *,
    port: int = 8765,
    host: str = "127.0.0.1",
    no_token: Flag = False,
    wait_ms: Milliseconds = 2.0,
    queue: Count = 4096,
    max_bytes: Count = 1 << 20,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Serve a model over HTTP, with a page to try it out.

    POST /predict labels a text, a pair or a list of them; /model, /metrics,
    /health and /openapi.json describe the model and the server. Requests that
    arrive together are labeled together. When the run gets a new best model,
    it is loaded, and no request is lost. The server listens on this machine
    alone unless --host says otherwise, and answers who has the printed token
    ($HEEDFUL_TOKEN sets it).

    Examples:
      heedful serve runs/reviews
      heedful serve reviews-onnx --port 9000 --host 0.0.0.0
      curl -H "Authorization: Bearer $HEEDFUL_TOKEN" --json '{"text": "fine"}' http://127.0.0.1:8765/predict

    Parameters
    ----------
    model
        Folder of a run, or one that heedful export wrote.
    port
        Port to listen on; 0 is any free one.
    host
        Address to listen on. Others than 127.0.0.1 can be reached from other machines, without encryption.
    no_token
        Answer everybody on this machine; only with the default --host.
    wait_ms
        How long a text may wait for others, to be labeled together with them.
    queue
        Number of texts that may wait; beyond it, requests get status 503.
    max_bytes
        Largest body of a request; larger ones get status 413.
    json
        Print the address and the token as one JSON object.
    """
    from heedful.options.serve import ServeOptions
    from heedful.server.serving import Address, serve_model

    def announce(address: Address) -> None:
        if json:
            print_json({"url": address.url, "port": address.port, "token": address.token})
        else:
            console().print(f"{model}: try it at {address.page} (Ctrl-C stops)", markup=False, soft_wrap=True)
        sys.stdout.flush()  # a program that reads it waits for it

    options = ServeOptions(
        host=host,
        port=port,
        token=not no_token,
        wait_ms=wait_ms,
        queue=queue,
        max_bytes=max_bytes,
        device=device,
    )
    serve_model(model, options, announce)
