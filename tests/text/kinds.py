"""Tokens of every kind, small, and the texts that are hardest to cut: what several tests share."""

import functools

import numpy as np
from hypothesis import strategies as st

from headcount.text.characters import Characters, Text8Characters
from headcount.text.symbols import Bytes, LegacyTxl, Tokens
from headcount.text.wordpieces import Wordpieces
from headcount.text.words import Words
from tests.conftest import make_text

SAMPLE = (
    make_text(6_000)
    + "Ein Täßchen Öl für 3 € – naïve façade, 東京 2026!\r\n\tdef f(x):\n        return x\n".encode() * 20
)


def as_text(content: bytes) -> np.ndarray:
    return np.frombuffer(content, dtype=np.uint8)


@functools.cache
def tokens_of(kind: str) -> Tokens:
    sample = as_text(SAMPLE)
    return {
        "bytes": Bytes,
        "legacy-txl": LegacyTxl,
        "text8": Text8Characters,
        "characters": lambda: Characters.learn(sample, None),
        "words": lambda: Words.learn(sample, 150),
        "words-spaced": lambda: Words.learn(as_text(b" a b <unk> \n \n = c = \n" * 30), None),
        "wordpieces": lambda: Wordpieces.learn(sample, 400),
    }[kind]()


LOSSLESS = ["bytes", "characters", "wordpieces"]
LEARNT = ["characters", "words", "wordpieces"]
ANY_TEXT = [*LOSSLESS, "legacy-txl", "words", "words-spaced"]

ADVERSARIAL = {
    "nothing": b"",
    "no spaces": b"etaoin" * 1_700,
    "only digits": b"7" * 10_000,
    "only spaces": b" " * 10_000,
    "only newlines": b"\n" * 5_000,
    "a word after spaces": b"word" + b" " * 5_000 + b"word",
    "runs of 64 and 65": (b" " * 64 + b"a" * 63 + b" " * 65 + b"a" * 64) * 20,
    "tabs before a space": b"\t \t a\t b" * 400,
    "only continuation bytes": bytes(range(0x80, 0xC0)) * 100,
    "truncated characters": "€".encode()[:2] * 2_000 + b"x" + "東".encode()[:1] * 2_000,
    "characters": "東京は€😀".encode() * 500,
    "one long line": make_text(20_000).replace(b"\n", b" ").replace(b".", b"").replace(b",", b""),
    "CRLF": make_text(5_000).replace(b"\n", b"\r\n"),
    "every byte": bytes(range(256)) * 30,
    "prose": SAMPLE,
}

# Bytes as they come, and bytes of few sorts, among which runs, words and broken characters are frequent.
CONTENT = st.one_of(
    st.binary(max_size=400),
    st.lists(st.sampled_from([b" ", b"\n", b"a", b"the", b"7", b"<", b"\xe2\x82\xac", b"\xe2", b"\xac", b"\t"])).map(
        b"".join
    ),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
)
