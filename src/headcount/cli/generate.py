"""headcount generate."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.options import STANDARD_INPUT, Checkpoint, Device, Source
from headcount.cli.terminal import Escaper


def generate(
    source: Source,
    prompt: Annotated[str, Parameter(help="what it goes on from; - is standard input")] = "",
    /,
    *,
    bytes_: Annotated[int, Parameter(name="--bytes", help="how many bytes to write")] = 500,
    temperature: Annotated[float, Parameter(help="0 takes the likeliest byte")] = 1.0,
    top_k: Annotated[int | None, Parameter(help="draw from the k likeliest bytes")] = None,
    top_p: Annotated[float | None, Parameter(help="draw from the likeliest bytes with this probability")] = None,
    seed: Annotated[int, Parameter(help="the same seed gives the same bytes")] = 0,
    checkpoint: Checkpoint = None,
    device: Device = None,
) -> None:
    """Let a model write: raw bytes into a pipe, control bytes escaped on a terminal."""
    from headcount.learn.interrupt import Interruption
    from headcount.learn.malloc import use_large_pages
    from headcount.use.load import load

    use_large_pages()
    lm = load(source, checkpoint=checkpoint, device=device)
    given = sys.stdin.buffer.read() if prompt == STANDARD_INPUT else os.fsencode(prompt)
    written = lm.generate(given, bytes_, stream=True, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    escape = Escaper() if sys.stdout.isatty() else None
    if escape:
        print(Escaper()(given, final=True), end="", file=sys.stderr, flush=True)
    with Interruption(says=b"") as interruption:  # an exception from a handler can get lost inside the kernels
        for byte in written:
            interruption.check()
            if escape:
                print(escape(bytes([byte])), end="", flush=True)
            else:
                sys.stdout.buffer.write(bytes([byte]))
                sys.stdout.buffer.flush()
    if escape:
        print(escape(b"", final=True))
