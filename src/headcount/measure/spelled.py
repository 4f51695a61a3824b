"""Nats for every byte, whatever the tokens: a token's nats are divided among the bytes that it stands for.

With the symbols sorted by what they spell, those that begin with the same bytes lie together, and the probability that
the next token begins so is the sum of their own. Of a token w = w₁…w_n

    nats(w_i) = ln P(token begins with w₁…w_{i-1}) - ln P(token begins with w₁…w_i)      for i < n
    nats(w_n) = ln P(token begins with w₁…w_{n-1}) - ln P(token is w)

which add up to the token's own, exactly. For bytes each token is its byte, and nothing is divided.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from headcount.measure.score import SEGMENT, in_use, score
from headcount.models.contract import Model
from headcount.text.encoding import Encoded
from headcount.text.mapped import stretch
from headcount.text.symbols import Bytes, LegacyTxl, Tokens

Nats = npt.NDArray[np.float64]
AT_ONCE = 1 << 23
"""Probabilities in memory at once."""
TOKENS_IN_A_PIECE = 4_096
BYTES_IN_A_PIECE = 65_536


class Sorted:
    """Symbols in the order of what they spell, and where those lie that begin alike."""

    def __init__(self, spellings: Sequence[bytes]) -> None:
        self.order = np.array(sorted(range(len(spellings)), key=spellings.__getitem__))
        self.spellings = [spellings[i] for i in self.order]
        self._ranges: dict[bytes, tuple[int, int]] = {}

    def range_of(self, prefix: bytes) -> tuple[int, int]:
        """The first symbol that begins with these bytes, and the one after the last."""
        if prefix not in self._ranges:
            short = prefix.rstrip(b"\xff")  # the next string of this length or less: 0xff has no successor
            beyond = bisect_left(self.spellings, short[:-1] + bytes([short[-1] + 1])) if short else len(self.spellings)
            self._ranges[prefix] = bisect_left(self.spellings, prefix), beyond
        return self._ranges[prefix]

    def nats(self, mass: Nats, symbol: float, spelling: bytes) -> Nats:
        """Nats of each byte of a token that has `symbol` of them; `mass`: all probabilities in sorted order."""
        begins = [mass[slice(*self.range_of(spelling[:i]))].sum() for i in range(1, len(spelling))]
        with np.errstate(divide="ignore"):  # what is very unlikely has a logarithm, but its exponential is 0
            kept = np.minimum(-np.log(begins), symbol)
        # Rounding must not let a longer beginning be likelier than a shorter one.
        return np.diff(np.maximum.accumulate([0.0, *kept, symbol]))

    def next_bytes(self, mass: Nats, prefix: bytes, count: int) -> list[tuple[int, float]]:
        """The likeliest bytes after a prefix, and their probabilities given that the token begins with it."""
        low, high = self.range_of(prefix)
        found, place = [], low
        while place < high:
            spelling = self.spellings[place]
            if len(spelling) == len(prefix):  # the token would end here
                place += 1
                continue
            begin, end = self.range_of(spelling[: len(prefix) + 1])
            found.append((spelling[len(prefix)], float(mass[begin:end].sum())))
            place = end
        whole = float(mass[low:high].sum())
        best = sorted(found, key=lambda pair: -pair[1])[:count]
        return [(byte, part / whole if whole else 0.0) for byte, part in best]


def sorter(tokens: Tokens) -> Callable[[int], Sorted]:
    """The sorted symbols after a symbol; only words have more than one order."""
    known: dict[int, Sorted] = {}

    def after(symbol: int) -> Sorted:
        spellings = tokens.spelled(symbol)
        if id(spellings) not in known:
            known[id(spellings)] = Sorted(spellings)
        return known[id(spellings)]

    return after


def score_bytes(model: Model, text: Encoded) -> Iterator[Nats]:
    """Nats of every byte of a text, a piece at a time; a token that does not spell its bytes divides evenly.

    What a kind drops has no tokens and costs nothing, which is why its figures are not of the whole text.
    """
    if isinstance(text.tokens, LegacyTxl):
        yield from _with_newlines(text, score(model, text.ids, start=text.tokens.start))
    elif isinstance(text.tokens, Bytes):
        yield from score(model, text.ids, start=text.tokens.start)
    else:
        written, parts = 0, []
        for token in _read(model, text):
            parts.append(token.nats())
            written += len(token.own)
            if len(parts) == TOKENS_IN_A_PIECE:
                yield np.concatenate(parts)
                parts.clear()
        white = len(text.text) - written  # at the end, of no word
        yield np.concatenate([*parts, np.zeros(white)])


def _with_newlines(text: Encoded, pieces: Iterator[Nats]) -> Iterator[Nats]:
    """Nats of all bytes from those of the bytes that are no newlines."""
    waiting = np.zeros(0)
    for begin in range(0, len(text.text), BYTES_IN_A_PIECE):
        kept = np.frombuffer(stretch(text.text, begin, begin + BYTES_IN_A_PIECE), dtype=np.uint8) != 10
        while len(waiting) < kept.sum():
            waiting = np.concatenate([waiting, next(pieces)])
        nats = np.zeros(len(kept))
        nats[kept], waiting = waiting[: kept.sum()], waiting[kept.sum() :]
        yield nats


@dataclass(frozen=True)
class Token:
    """A token of a text where it stands."""

    own: bytes
    """The bytes of the text that it stands for."""
    spells: bool
    """Whether it spells them; an unknown word does not."""
    whole: float
    """Its nats."""
    mass: Nats
    """The probabilities of all symbols, in sorted order."""
    order: Sorted

    def nats(self) -> Nats:
        """Of each of its bytes."""
        if self.spells:
            return self.order.nats(self.mass, self.whole, self.own)
        return np.full(len(self.own), self.whole / len(self.own))


def _read(model: Model, text: Encoded) -> Iterator[Token]:
    """The tokens of a text, one after the other."""
    after, byte = sorter(text.tokens), 0
    for place, before, ids, log_probs in _predicted(model, text):
        spans = text.tokens.lengths[ids] if text.spans is None else text.spans[place : place + len(ids)]
        for last, symbol, span, row in zip(before, ids, spans, log_probs, strict=True):
            own, order = text.text[byte : byte + int(span)].tobytes(), after(int(last))
            spells = own == text.tokens.spelled(int(last))[symbol]
            yield Token(own, spells, -float(row[symbol]), np.exp(row[order.order]), order)
            byte += int(span)


Predicted = tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64], Nats]


@torch.inference_mode()
def _predicted(model: Model, text: Encoded) -> Iterator[Predicted]:
    """Where some tokens begin, the token before each, the tokens, and the log-probabilities of all symbols there."""
    segment = max(1, min(SEGMENT, model.longest_segment() or SEGMENT, AT_ONCE // text.tokens.vocabulary))
    device, state, last = next(model.parameters()).device, model.start(1), text.tokens.start
    with in_use(model):
        for place in range(0, len(text.ids), segment):
            ids = text.ids[place : place + segment].astype(np.int64)
            before = np.concatenate([[last], ids[:-1]])
            hidden, state = model(torch.from_numpy(before[None]).to(device), state)
            yield place, before, ids, model.head.log_probs(hidden)[0].double().cpu().numpy()
            last = int(ids[-1])


Expected = list[list[tuple[int, float]]]
"""At every place the likeliest bytes there with their probabilities, the likeliest first."""


def likeliest_bytes(model: Model, text: Encoded, count: int) -> tuple[Nats, Expected]:
    """Nats of every byte of a short text, and what was expected in its place; nothing where a byte is dropped."""
    if isinstance(text.tokens, Bytes):
        return _likeliest_single(model, text, count)
    nats, expected = [np.zeros(0)], []
    for token in _read(model, text):
        nats.append(token.nats())
        prefixes = (token.own[:i] if token.spells else b"" for i in range(len(token.own)))
        expected += [token.order.next_bytes(token.mass, prefix, count) for prefix in prefixes]
    return np.concatenate(nats), expected


def _likeliest_single(model: Model, text: Encoded, count: int) -> tuple[Nats, Expected]:
    """The same where every symbol is a byte: no sums over prefixes, only the largest of each row."""
    expected: Expected = [[] for _ in text.text]
    nats, places = np.zeros(len(text.text)), _read_places(text)
    for place, _, ids, log_probs in _predicted(model, text):
        at = places[place : place + len(ids)]
        nats[at] = -log_probs[np.arange(len(ids)), ids]
        best = torch.from_numpy(log_probs).topk(min(count, log_probs.shape[1]))
        for where, symbols, chances in zip(at, best.indices.tolist(), best.values.exp().tolist(), strict=True):
            expected[where] = list(zip(symbols, chances, strict=True))
    return nats, expected


def _read_places(text: Encoded) -> npt.NDArray[np.int64]:
    """Where the bytes are that have a token of their own: all but the newlines that one kind drops."""
    return np.flatnonzero(text.text != 10) if isinstance(text.tokens, LegacyTxl) else np.arange(len(text.text))
