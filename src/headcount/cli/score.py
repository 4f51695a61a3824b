"""headcount score."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.options import STANDARD_INPUT, Checkpoint, Device, Json, Source


def score(
    source: Source,
    text: Annotated[str, Parameter(help="a file; - is standard input")],
    /,
    *,
    checkpoint: Checkpoint = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Bits for every byte of a text: place, byte and bits, one line a byte."""
    from headcount.text import corpora
    from headcount.use.load import load

    if text == STANDARD_INPUT:
        with tempfile.TemporaryDirectory() as folder:
            piped = Path(folder) / "standard input"
            with piped.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            data = corpora.map_file(piped)  # stays readable when the name is gone
    else:
        data = corpora.map_file(Path(text))
    lm = load(source, checkpoint=checkpoint, device=device)
    total, place = 0.0, 0
    if json:
        print('{"bits": [', end="")
    for bits in lm.score_pieces(data):
        total += float(bits.sum())
        lines = []
        for value in bits.tolist():
            if json:
                lines.append(f"{', ' if place else ''}{value!r}")
            else:
                lines.append(f"{place}\t{_name(int(data[place]))}\t{value:.4f}\n")
            place += 1
        sys.stdout.write("".join(lines))
    if json:
        print(f'], "bytes": {place}, "bits_per_byte": {total / place!r}}}')
    print(f"{place:,} bytes, {total / place:.4f} bits per byte (carried, from an empty state)", file=sys.stderr)


def _name(byte: int) -> str:
    return chr(byte) if 33 <= byte < 127 else f"\\x{byte:02x}"
