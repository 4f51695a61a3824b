"""Where the bits are: the tokenisation attack of the SHA-RNN's paper, as an experiment (Merity 2019, 4.2.1 and 6.1).

The paper withdrew its own because the normalisation was wrong. Here every kind of token is charged all of its nats over
the same bytes. The same body is trained under each (trainings), and of each are measured

    the bits in all, over equal bytes                             what can be compared
    bits by place in a word                                       where they lie (measure/spelled divides tokens)
    what a canonical segmentation overstates                      segmentations
    guesses for a word, with feedback and without                 guesses
    two spellings of a word, names that come back                 pairs
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from headcount.claims import pairs, segmentations, tokenisation_page, trainings
from headcount.claims.branching import Branch, branches
from headcount.claims.contract import Claim, Setting
from headcount.claims.evidence import standard_error
from headcount.claims.guesses import MOST_GUESSES, Openings, guess, summed_up
from headcount.claims.kept import kept
from headcount.claims.tokenisation_verdict import CHAIN_RULE, verdict
from headcount.claims.trainings import Kind, Training
from headcount.errors import RequestError
from headcount.learn.run import Run
from headcount.measure import protocols
from headcount.measure.kinds import place_in_word
from headcount.measure.score import score
from headcount.models.contract import count_parameters
from headcount.show.page import Section
from headcount.tables import EvaluateTable
from headcount.text.corpora import Bytes, map_file
from headcount.text.encoding import Encoded, encode
from headcount.text.mapped import sha256
from headcount.text.symbols import Tokens
from headcount.use.load import LanguageModel, load
from headcount.use.train import say
from headcount.version import __version__

Bits = npt.NDArray[np.float64]
RULES = 2
"""Raised whenever the same run gives other numbers: what older rules measured is measured again."""
MEASURED = "measured"
"""The folder of what was measured of every run."""
SPLIT = "valid, whole lines"
"""What the figures are of: no other command measures these very bytes."""
PLACES = 10
"""Letters of a word that are shown one by one; the last stands for all after it."""
BLOCK = 512
"""Bytes of a stretch over which two kinds are compared, for the error of the difference."""
MOST_WORDS = 96
"""Words that are guessed, and whose segmentations are summed."""
MOST_SHOWN = 5
"""Of them, those that are shown one by one."""
WORD = re.compile(rb"(?<=[^\s]) [A-Za-z]+(?=[^A-Za-z\x80-\xff])")


@dataclass(frozen=True)
class Heard:
    """What all kinds are measured on."""

    corpus: str
    command: Sequence[str]
    """That asked for it."""
    text: Bytes
    words: Sequence[tuple[int, int]]
    """Begin (at its space) and end of some words."""
    names: Sequence[tuple[int, int, int]]
    cases: Sequence[pairs.Case]


class Tokenisation(Claim):
    """Do small tokens look better than they are?"""

    name = "tokenisation"
    source = "Merity 2019, “Single Headed Attention RNN: Stop Thinking With Your Head”, 4.2.1 and 6.1"
    says = (
        "figures of models with different tokens cannot be compared, because pieces spread a word's entropy and the "
        "right piece is told after each guess: a side channel, like a password that is checked letter by letter."
    )
    tested = (
        "one SHA-RNN body under bytes, wordpieces (1k, 8k) and, where they restore the text, words; at equal bytes and "
        "at equal seconds; all bits of each over the same held-out bytes, and where they lie."
    )

    def measure(self, setting: Setting) -> dict[str, Any]:
        """Train, then measure every run."""
        corpus = trainings.open_source(setting)
        body = trainings.body_recipe(setting, corpus)
        held_out = trainings.held_out_of(corpus, body.evaluate.limit or trainings.HELD_OUT)
        if len(held_out) < 2 * BLOCK:
            raise RequestError(f"only {len(held_out)} bytes are held out: at least {2 * BLOCK} are needed")
        kinds, left_out = trainings.find_kinds(corpus, held_out)
        by_name = {kind.name: kind for kind in kinds}
        runs = trainings.train_all(setting, corpus, body, kinds)
        known = pairs.find_pairs(map_file(corpus.file))
        heard = Heard(
            corpus.name,
            setting.command(self.name),
            held_out,
            _spread(_word_places(held_out.tobytes()), MOST_WORDS),
            pairs.find_names(held_out.tobytes()),
            pairs.find_cases(corpus.split("valid"), known),
        )
        heard = _with_cases_for_all(heard, [run.tokens for run, _ in runs])
        measured = [_measured_once(setting, run, one, by_name[one.tokens], heard) for run, one in runs]
        plain = next(one for one in measured if one["record"]["tokens"]["kind"] == "bytes")
        return {
            "seed": body.seed,
            "corpus": {"name": corpus.name, "sha256": corpus.sha256, "bytes": corpus.ends[-1]},
            "held_out": {"bytes": len(held_out), "sha256": sha256(held_out)},
            "budget": {"minutes": setting.minutes, "bytes": setting.bytes, "set": list(setting.set)},
            "left_out": left_out,
            "most_guesses": MOST_GUESSES,
            "pairs": {word.decode(): list(counts) for word, counts in sorted(known.items())},
            "runs": [{**one["record"], "against_bytes": _against(one, plain)} for one in measured],
        }

    def verdict(self, record: Mapping[str, Any]) -> str:
        """Which part of the worry is accounting, and which is real."""
        return verdict(record)

    def sections(self, record: Mapping[str, Any]) -> list[Section]:
        """The tables and plots."""
        return tokenisation_page.sections(record)


def _word_places(text: bytes) -> list[tuple[int, int]]:
    return [match.span() for match in WORD.finditer(text)]


def _spread(places: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """At most so many, evenly."""
    chosen = {round(place) for place in np.linspace(0, len(places) - 1, min(len(places), most))}
    return [places[place] for place in sorted(chosen)]


def _with_cases_for_all(heard: Heard, kinds: Sequence[Tokens]) -> Heard:
    """Leave out spellings that a closed vocabulary does not know: all kinds are measured on the same ones."""
    fitting = [
        case
        for case in heard.cases
        if all(
            tokens.encode_piece(case.before + form + case.after).exact
            for tokens in kinds
            for form in (case.written, case.other)
        )
    ]
    return replace(heard, cases=fitting)


def _measured_once(setting: Setting, run: Run, one: Training, kind: Kind, heard: Heard) -> dict[str, Any]:
    """Everything of one run; what was measured of these weights before is not measured again."""
    lm = load(run.path, device=setting.device)
    on = [sha256(heard.text), heard.words, heard.names, heard.cases]
    asked = [RULES, __version__, lm.facts, lm.tokens.sha256, one, kind, on]

    def measure() -> dict[str, Any]:
        say(f"measuring {run.path}")
        return _measured(lm, run, one, kind, heard)

    return kept(setting.folder / MEASURED / f"{run.path.name}.json", asked, measure)


def _measured(lm: LanguageModel, run: Run, one: Training, kind: Kind, heard: Heard) -> dict[str, Any]:
    """Everything of one run, and its bits by blocks of bytes."""
    text, bits = encode(heard.text, lm.tokens), lm.score(heard.text.tobytes())
    last = trainings.last_step(run)
    vocabulary = count_parameters(lm.model.head)
    config = lm.model.config
    record = {
        "run": run.path.name,
        "tokens": {
            "name": kind.name,
            "kind": lm.tokens.kind,
            "vocabulary": lm.tokens.vocabulary,
            "bytes_per_token": kind.bytes_per_token,
        },
        "budget": one.budget,
        "parameters": {"body": count_parameters(lm.model) - vocabulary, "vocabulary": vocabulary},
        "window": {"tokens": config.window, "bytes": config.window * kind.bytes_per_token},
        "steps": run.recipe.train.steps,
        "bytes_read": last["bytes"],
        "seconds": last["seconds"],
        "figure": _figure(lm, text, heard),
        **_totals(lm, bits, text),
        "places": _by_place(heard.text, bits),
        "beginning": _beginning(heard.text, bits),
        "overstated": _overstated(lm, text, bits, heard) if lm.tokens.kind != "words" else None,
        "guesses": _guesses(lm, text, heard),
        "spellings": pairs.measure_spellings(lm, heard.cases),
        "names": pairs.measure_names(bits, heard.names),
    }
    blocks = bits[: len(bits) // BLOCK * BLOCK].reshape(-1, BLOCK).mean(axis=1)
    return {"record": record, "blocks": blocks.tolist()}


def _figure(lm: LanguageModel, text: Encoded, heard: Heard) -> dict[str, Any]:
    """The figure over exactly these bytes, which the run keeps too."""
    measured = protocols.measure(lm.model, text, EvaluateTable(), split="valid")
    return lm.keep_figure(measured, heard.corpus, SPLIT, heard.command, heard.text).to_dict()


def _ends(text: Encoded) -> npt.NDArray[np.int64]:
    """Where every token ends, in bytes."""
    return np.cumsum(text.tokens.lengths[text.ids] if text.spans is None else text.spans, dtype=np.int64)


def _totals(lm: LanguageModel, bits: Bits, text: Encoded) -> dict[str, Any]:
    """All bits over the same bytes; beside them what the tokens themselves were charged, and which bytes they spell."""
    by_token = np.concatenate(list(score(lm.model, text.ids, start=lm.tokens.start))) / math.log(2)
    mean = float(by_token.mean())
    return {
        "restored": hashlib.sha256(lm.tokens.decode([int(symbol) for symbol in text.ids])).hexdigest(),
        "bits": float(bits.sum()),
        "bits_per_byte": float(bits.mean()),
        "tokens_scored": len(by_token),
        "bits_per_token": mean,
        "perplexity_per_token": 2**mean,
        "spread": float(by_token.std() / mean),
    }


def _by_place(text: Bytes, bits: Bits) -> list[dict[str, Any]]:
    """Letters and the bits of all their bytes, at each place of a word: 0 is the byte before its first letter."""
    place = np.minimum(place_in_word(text), PLACES)
    before = np.append(place[1:] == 1, False) & (place == 0)
    begins = (text & 0xC0) != 0x80
    masks = [(before, before), *((place == i, (place == i) & begins) for i in range(1, PLACES + 1))]
    return [
        {"place": i, "count": int(counted.sum()), "bits": float(bits[mask].sum())}
        for i, (mask, counted) in enumerate(masks)
        if mask.any()
    ]


def _beginning(text: Bytes, bits: Bits) -> dict[str, Any]:
    """By how much first letters take more of the bits of all letters than they are of them, F / L - f / l, with the
    standard error over blocks of text: of a ratio of sums that of its residuals, (F_b - F / L · L_b) / mean L_b.
    """
    place, begins = place_in_word(text), (text & 0xC0) != 0x80
    first, letter = place == 1, place > 0
    each = np.stack([bits * first, bits * letter, first & begins, letter & begins])
    blocks = each[:, : len(bits) // BLOCK * BLOCK].reshape(4, -1, BLOCK).sum(axis=2)
    of_bits, all_bits, of_letters, all_letters = each.sum(axis=1)
    means = blocks.mean(axis=1)
    if not (means[1] > 0 and means[3] > 0):
        return {"excess": 0.0, "error": None, "blocks": blocks.shape[1]}
    shares = of_bits / all_bits, of_letters / all_letters
    residuals = [(blocks[i] - share * blocks[i + 1]) / means[i + 1] for i, share in zip((0, 2), shares, strict=True)]
    error = standard_error(residuals[0] - residuals[1])
    return {"excess": float(shares[0] - shares[1]), "error": error, "blocks": blocks.shape[1]}


def _at_words(lm: LanguageModel, text: Encoded, heard: Heard) -> Iterator[tuple[bytes, list[int], Branch, int]]:
    """Every word that begins and ends with tokens: with its space, its symbols, a branch before it, where it begins."""
    ends = _ends(text)
    first = {int(end): i + 1 for i, end in enumerate(ends)}
    fitting = [(begin, end) for begin, end in heard.words if begin in first]
    places = [first[begin] for begin, _ in fitting]
    for (begin, end), place, branch in zip(fitting, places, branches(lm.model, text, places), strict=True):
        last = int(np.searchsorted(ends, end)) + 1  # of words, what ends a word may belong to it
        yield heard.text[begin:end].tobytes(), [int(symbol) for symbol in text.ids[place:last]], branch, begin


def _overstated(lm: LanguageModel, text: Encoded, bits: Bits, heard: Heard) -> dict[str, Any]:
    """Canonical bits of some words less those of all their segmentations."""
    pieces, generator = segmentations.Pieces(lm.tokens.spellings), np.random.default_rng(1)
    words, canonical, rows, shown = 0, 0.0, [], []
    for word, symbols, branch, begin in _at_words(lm, text, heard):
        whole = heard.text[begin : begin + len(word) + 1].tobytes()
        # Of what ends the word only its first byte is asked for, not which token it belongs to.
        own = float(bits[begin : begin + len(word)].sum()) - segmentations.ending(branch, whole, symbols, pieces)
        total = segmentations.total(branch, whole, pieces, generator)
        words, canonical = words + 1, canonical + own
        rows.append((own + total.bits, total.error))
        shown.append({"word": _shown(word), "pieces": [_shown(lm.tokens.spellings[i]) for i in symbols], "bits": own})
    over = np.array([row[0] for row in rows])
    if lm.tokens.kind == "bytes" and len(over) and np.abs(over).max() > CHAIN_RULE:
        raise AssertionError(f"the chain rule fails for bytes: {np.abs(over).max()} bits")
    errors = [error for _, error in rows if error is not None]
    return {
        "words": words,
        "sampled": len(errors),
        "canonical": canonical,
        "overstated": float(over.sum()),
        "share": float(over.sum()) / canonical if canonical else 0.0,
        "largest": [{**shown[i], "overstated": float(over[i])} for i in np.argsort(-over)[:MOST_SHOWN]],
        "deviation": float(np.abs(over).max(initial=0.0)),
        "error": None if (error := standard_error(over)) is None else words * error,  # of the words that were taken
        "drawn_error": math.sqrt(sum(error**2 for error in errors)),
    }


def _shown(text: bytes) -> str:
    """Bytes for a table: a space is seen."""
    return text.decode(errors="backslashreplace").replace(" ", "␣")


def _guesses(lm: LanguageModel, text: Encoded, heard: Heard) -> dict[str, Any]:
    """How words are guessed, on average."""
    openings = Openings(lm.tokens.spellings)
    return summed_up(
        [guess(branch, word, symbols, openings) for word, symbols, branch, _ in _at_words(lm, text, heard)]
    )


def _against(one: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, float | None]:
    """Bits per byte beyond those of the bytes, with the standard error over so many blocks of text."""
    difference = one["record"]["bits_per_byte"] - plain["record"]["bits_per_byte"]
    error = standard_error(np.subtract(one["blocks"], plain["blocks"]))
    return {"difference": difference, "error": error, "blocks": len(plain["blocks"])}
