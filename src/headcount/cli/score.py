"""headcount score."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from headcount.cli.options import STANDARD_INPUT, STANDARD_OUTPUT, Checkpoint, Device, Json, Output, Source

if TYPE_CHECKING:
    from headcount.text.corpora import Bytes
    from headcount.use.load import LanguageModel


def score(
    source: Source,
    text: Annotated[str, Parameter(help="a file; - is standard input")],
    /,
    *,
    html: Annotated[bool, Parameter(negative="", help="a page that colours the text by bits")] = False,
    against: Annotated[str | None, Parameter(help="with --html, colour the difference from this model")] = None,
    output: Output = None,
    checkpoint: Checkpoint = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Bits for every byte of a text: place, byte and bits, one line a byte; or a page.

    The page goes to --output, else into a pipe; on a terminal it becomes a file named after the text.
    """
    from headcount.errors import RequestError
    from headcount.show.scored import require_short
    from headcount.use.load import load

    if html and json:
        raise RequestError("--html and --json contradict each other: give one")
    if not html and (against is not None or output is not None):
        raise RequestError("--against and --output belong to --html")
    data = open_text(text)
    if html:
        require_short(len(data))
    lm = load(source, checkpoint=checkpoint, device=device)
    if html:
        _write_page(lm, data.tobytes(), text, load(against, device=device) if against else None, output)
    else:
        _print_lines(lm, data, json)


def open_text(text: str) -> Bytes:
    """A file, mapped; or standard input, kept in a file for as long as it is read."""
    from headcount.text import corpora

    if text != STANDARD_INPUT:
        return corpora.open_text(text)
    with tempfile.TemporaryDirectory() as folder:
        piped = Path(folder) / "standard input"
        with piped.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return corpora.map_file(piped)  # stays readable when the name is gone


def _write_page(lm: LanguageModel, text: bytes, name: str, other: LanguageModel | None, output: Path | None) -> None:
    from headcount.cli.pages import put
    from headcount.show.scored import difference_page, incomparable, scored_page
    from headcount.use.train import say

    stem = "text" if name == STANDARD_INPUT else Path(name).name
    if other is not None and lm.read(text).exact != other.read(text).exact:
        say(incomparable(lm, other))
    page = scored_page(lm, text, stem) if other is None else difference_page(lm, other, text, stem)
    put(page, output or Path(f"{stem}.html" if sys.stdout.isatty() else STANDARD_OUTPUT))


def _print_lines(lm: LanguageModel, data: Bytes, json: bool) -> None:
    from headcount.counted import counted
    from headcount.measure.figure import per_byte

    total, place, read = 0.0, 0, lm.read(data)
    if json:
        print('{"bits": [', end="")
    for bits in lm.score_pieces(read):
        total += float(bits.sum())
        lines = []
        for value in bits.tolist():
            if json:
                lines.append(f"{', ' if place else ''}{value!r}")
            else:
                lines.append(f"{place}\t{_name(int(data[place]))}\t{value:.4f}\n")
            place += 1
        sys.stdout.write("".join(lines))
    value, unit = per_byte(total, read)
    if json:
        print(f'], "bytes": {place}, "counted_over": {read.bytes}, "bits_per_byte": {value!r}, "unit": "{unit}"}}')
    over = f", {read.bytes:,} of them counted" if read.bytes != place else ""
    print(f"{counted(place, 'byte')}{over}, {value:.4f} {unit} (carried, from an empty state)", file=sys.stderr)


def _name(byte: int) -> str:
    return chr(byte) if 33 <= byte < 127 else f"\\x{byte:02x}"
