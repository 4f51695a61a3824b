"""A text as tokens: encoded once, piece by piece in all cores, kept in the cache by content, and memory-mapped.

A piece is a stretch of the text between two cuts of its kind, so that pieces encode alone. Workers are processes of
this very file: they are told the kind as JSON, are sent pieces, and send tokens back, all as plain numbers. Text and
tokens are never whole in memory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

import numpy as np

from headcount import durable
from headcount.errors import DataError
from headcount.text import mapped
from headcount.text.cache import making
from headcount.text.mapped import Text, stretch, stretches
from headcount.text.progress import shown
from headcount.text.symbols import Bytes, Ids, Piece, Spans, Tokens

AT_ONCE = 1 << 20
"""Bytes of a piece."""
KEPT_FROM = 1 << 22
"""Shorter texts are encoded anew whenever they are needed."""


@dataclass(frozen=True)
class Encoded:
    """A text and its tokens."""

    text: Text
    tokens: Tokens
    ids: Ids
    spans: Spans | None
    """Bytes of the text that each token stands for; None where spellings say so."""
    exact: bool
    """Whether the text can be restored from the tokens."""

    @property
    def bytes(self) -> int:
        """What a figure is counted over: the text's bytes (what is left of them for the stream without newlines)."""
        return len(self.ids) if self.tokens.kind == "legacy-txl" else len(self.text)

    @functools.cached_property
    def sha256(self) -> str:
        """Of the text."""
        return mapped.sha256(self.text)

    def bytes_of(self, ids: Ids, spans: Spans | None) -> int:
        """How many bytes some of the tokens stand for, given their own part of ids and spans."""
        if isinstance(self.tokens, Bytes):
            return ids.size
        return int((self.tokens.lengths[ids] if spans is None else spans).sum(dtype=np.int64))


def encode(text: Text, tokens: Tokens) -> Encoded:
    """A text as tokens: bytes are there already, short texts are encoded now, long ones once."""
    if type(tokens) is Bytes:
        return Encoded(text, tokens, text, None, True)
    if len(text) < KEPT_FROM:
        piece = tokens.encode_piece(text.tobytes())
        return Encoded(text, tokens, piece.ids, piece.spans, piece.exact)
    learnt = f"{tokens.sha256 or tokens.vocabulary} {tokens.kind} rules {tokens.rules}"
    key = hashlib.sha256(f"{mapped.sha256(text)} {learnt}".encode()).hexdigest()[:32]
    with making(f"tokens-{key}.bin") as file:
        about = _whole(file) or _prepare(file, text, tokens)
    empty = not file.stat().st_size  # which cannot be mapped
    table = np.zeros(0, about["dtype"]) if empty else np.memmap(file, dtype=about["dtype"], mode="r")
    table = table.reshape(-1, about["columns"])
    return Encoded(text, tokens, table[:, 0], table[:, 1] if about["columns"] == 2 else None, about["exact"])


def _about(file: Path) -> Path:
    return file.with_suffix(".json")


def _whole(file: Path) -> dict[str, Any] | None:
    """What is known of prepared tokens, if they are there and whole."""
    try:
        about = json.loads(_about(file).read_text())
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256")
        return dict(about) if about["sha256"] == _signed(digest, about) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _signed(digest: Any, about: Mapping[str, Any]) -> str:
    """The hash of prepared tokens and of what is known of them."""
    said = {key: value for key, value in about.items() if key != "sha256"}
    digest.update(json.dumps(said, sort_keys=True).encode())
    return str(digest.hexdigest())


def _prepare(file: Path, text: Text, tokens: Tokens) -> dict[str, Any]:
    """Encode a text into a file: a column of tokens, and one of their spans where spellings do not tell."""
    digest = hashlib.sha256()
    about: dict[str, Any] = {"dtype": "uint16", "columns": 1, "exact": True}

    def content() -> Iterator[bytes]:
        for piece in _encoded_pieces(text, tokens):
            table = piece.ids if piece.spans is None else np.stack([piece.ids, piece.spans], axis=1)
            about["columns"], about["exact"] = table.ndim, about["exact"] and piece.exact
            about["dtype"] = "uint32" if tokens.vocabulary > 1 << 16 or table.ndim == 2 else "uint16"
            chunk = np.ascontiguousarray(table, dtype=about["dtype"]).tobytes()
            digest.update(chunk)
            yield chunk

    _about(file).unlink(missing_ok=True)
    durable.write(file, content())
    about["sha256"] = _signed(digest, about)
    durable.write_json(_about(file), about)
    return about


def _encoded_pieces(text: Text, tokens: Tokens) -> Iterator[Piece]:
    """The pieces in order. Kinds that learn nothing are quick; the others have workers."""
    if tokens.learnt() is not None:
        yield from _encoded_by_workers(text, tokens)
        return
    for begin, end in stretches(text, AT_ONCE, tokens.cut):
        yield tokens.encode_piece(stretch(text, begin, end))


def _encoded_by_workers(text: Text, tokens: Tokens) -> Iterator[Piece]:
    """As many as there are cores, or pieces if these are fewer; a few pieces ahead of who reads them."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(count, -(-len(text) // AT_ONCE))
    with contextlib.ExitStack() as stack:
        workers: SimpleQueue[Callable[[bytes, bytes], Piece]] = SimpleQueue()
        for _ in range(count):
            workers.put(stack.enter_context(_worker(tokens)))
        show = stack.enter_context(shown(f"{tokens.kind}, once", len(text)))
        pool = stack.enter_context(ThreadPoolExecutor(count))

        def one(begin: int, end: int) -> Piece:
            worker = workers.get()
            try:
                return worker(stretch(text, begin, end), text[max(0, begin - 1) : begin].tobytes() or b"\n")
            finally:
                workers.put(worker)

        ahead: deque[tuple[int, Future[Piece]]] = deque()
        for begin, end in stretches(text, AT_ONCE, tokens.cut):
            ahead.append((end, pool.submit(one, begin, end)))
            if len(ahead) > 2 * count:
                done, first = ahead.popleft()
                yield first.result()
                show(done)
        for done, first in ahead:
            yield first.result()
            show(done)


_SENT = struct.Struct("<QB")
"""To a worker: the size of a piece, the byte before it; then the piece."""
_RETURNED = struct.Struct("<Q??")
"""Back: how many tokens, whether spans follow them, whether the piece is exact; then both as uint32."""


@contextlib.contextmanager
def _worker(tokens: Tokens) -> Iterator[Callable[[bytes, bytes], Piece]]:
    """A process that encodes what it is given: not led astray by files that lie where it is started (-P), and not
    reached by the terminal's signals, which are for us.
    """
    command = [sys.executable, "-P", "-c", "from headcount.text.encoding import work; work()"]
    pipe, about = subprocess.PIPE, json.dumps(tokens.learnt()).encode()
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True) as process:
        to, back = process.stdin, process.stdout
        assert to is not None and back is not None, "both are pipes"
        first = [_SENT.pack(len(about), 0) + about]

        def ask(text: bytes, before: bytes) -> Piece:
            try:
                to.writelines([*first, _SENT.pack(len(text), before[0]), text])
                to.flush()
            except BrokenPipeError:
                raise DataError(_DIED) from None
            first.clear()
            count, has_spans, exact = _RETURNED.unpack(_exactly(back, _RETURNED.size))
            ids = np.frombuffer(_exactly(back, 4 * count), dtype=np.uint32)
            return Piece(ids, np.frombuffer(_exactly(back, 4 * count), dtype=np.uint32) if has_spans else None, exact)

        try:
            yield ask
        finally:
            process.kill()
            with contextlib.suppress(BrokenPipeError):  # what it did not read
                to.close()


_DIED = "a process that encodes tokens has died; is the memory full?"


def _exactly(pipe: BinaryIO | Any, size: int) -> bytes:
    found = pipe.read(size)
    if len(found) < size:
        raise DataError(_DIED)
    return bytes(found)


def work() -> None:
    """What a worker does: read the kind, then encode pieces until there are no more, or nobody who asked for them."""
    from headcount.text import tokens as kinds

    given, result = sys.stdin.buffer, sys.stdout.buffer
    tokens: Tokens | None = None
    while len(header := given.read(_SENT.size)) == _SENT.size:
        size, before = _SENT.unpack(header)
        content = given.read(size)
        if len(content) < size:
            break
        if tokens is None:
            tokens = kinds.read(json.loads(content))
            continue
        piece = tokens.encode_piece(content, bytes([before]))
        try:
            result.write(_RETURNED.pack(len(piece.ids), piece.spans is not None, piece.exact))
            for numbers in (piece.ids, piece.spans):
                if numbers is not None:
                    result.write(np.ascontiguousarray(numbers, dtype=np.uint32).tobytes())
            result.flush()
        except BrokenPipeError:
            os._exit(0)  # what is buffered must not fail again
