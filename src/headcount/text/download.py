"""Fetching with pooch, which checks the hash; a download that was cut off goes on where it stopped.

What has come so far lies in `NAME.part`, and beside it what the server said of the file: its validator (RFC 9110: a
strong ETag, or the date of its last change) and its length. Going on asks for the rest only `If-Range` the file is
still that one; a file that changed comes whole again. Whatever came, nothing is used before its hash is right.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount import durable
from headcount.errors import DataError, RequestError
from headcount.text.cache import making
from headcount.text.progress import shown

SECONDS_WITHOUT_A_BYTE = 60
MOST_BYTES = 1 << 36
CHUNK = 1 << 15
"""What breaks off in the middle of one is lost, so they are small."""


def fetch(url: str, name: str, known_hash: str | None) -> Path:
    """The file behind an address, in the cache; without a known hash whoever unpacks it must verify what is inside."""
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)  # the bar says what it says
    with making("fetched") as folder:
        folder.mkdir(exist_ok=True)
        for leftover in folder.glob("tmp*"):  # pooch's, of a process that was killed
            leftover.unlink()
        file = Path(url).name
        try:
            return Path(pooch.retrieve(url, known_hash=known_hash, fname=file, path=folder, downloader=resume))
        except OSError as error:  # requests' errors are OSErrors
            raise RequestError(
                f"cannot download {name} ({type(error).__name__}): get {url} by other means and put the file at "
                f"{folder / file}, or name it: corpus.path of a recipe, --from of headcount corpus"
            ) from None
        except ValueError as error:  # pooch's word for a hash that is not the known one
            raise DataError(f"what {url} gives is not {name}, and was thrown away: {error}") from None


def resume(url: str, output_file: str | Path, mover: object) -> None:
    """Pooch's downloader: it fills `output_file`, which pooch verifies."""
    part = Path(output_file).with_name(f"{Path(url).name}.part")
    while True:
        before = _size(part)
        try:
            _receive(url, part)
            break
        except OSError:
            if _size(part) <= before:  # as long as it gets on, it is worth another try
                raise
    part.replace(output_file)
    _record_of(part).unlink(missing_ok=True)


def _receive(url: str, part: Path) -> None:
    import requests

    known = _read_record(part, url)
    have = _size(part) if known else 0
    if known and have == known["length"]:
        return
    headers = {"User-Agent": "headcount", "Accept-Encoding": "identity"}
    if known and have:
        headers |= {"Range": f"bytes={have}-", "If-Range": known["validator"]}
    with requests.get(url, headers=headers, stream=True, timeout=SECONDS_WITHOUT_A_BYTE) as answer:
        if answer.status_code == 416:  # what we have cannot be a part of what is there
            part.unlink()
            raise ConnectionError("the server has no such part")
        answer.raise_for_status()
        goes_on = answer.status_code == 206
        if goes_on and not _fits(answer.headers.get("Content-Range", ""), have, known):
            part.unlink(missing_ok=True)
            raise ConnectionError("the server sent another part than was asked for")
        if not goes_on:
            have = 0
            part.unlink(missing_ok=True)  # before the record, which must not speak of other bytes
            _write_record(part, url, answer.headers)
        length = int(answer.headers.get("Content-Length", 0))
        with shown(f"fetching {Path(url).name}", have + length or None) as show, part.open("ab") as file:
            for chunk in answer.iter_content(CHUNK):
                have += len(chunk)
                if have > MOST_BYTES:
                    raise RequestError(f"{url} sends more than {MOST_BYTES / 1e9:,.0f} GB: given up")
                file.write(chunk)
                show(have)


def _fits(sent: str, have: int, known: Mapping[str, Any] | None) -> bool:
    """Whether what is sent begins where we stopped, in a file as long as it was."""
    return known is not None and sent.startswith(f"bytes {have}-") and sent.endswith(f"/{known['length']}")


def _size(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0


def _record_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _write_record(part: Path, url: str, headers: Mapping[str, str]) -> None:
    """Without a validator there is no record, and the next try begins anew."""
    tag = headers.get("ETag", "")
    validator = tag if tag.startswith('"') else headers.get("Last-Modified")
    length = headers.get("Content-Length", "")
    if validator and length.isdecimal():
        durable.write_json(_record_of(part), {"url": url, "validator": validator, "length": int(length)})
    else:
        _record_of(part).unlink(missing_ok=True)


def _read_record(part: Path, url: str) -> dict[str, Any] | None:
    try:
        record = json.loads(_record_of(part).read_text())
    except (OSError, ValueError):
        return None
    known = isinstance(record, dict) and record.get("url") == url
    return record if known and _size(part) <= record.get("length", -1) else None
