"""All segmentations of a word: the sum against brute force, the draws against the sum, bytes against the chain rule."""

import math
import statistics

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.claims import segmentations
from headcount.claims.branching import branches
from headcount.claims.segmentations import KEPT, MOST_PATHS, Pieces, ending, exact, sampled, thinned, total
from headcount.measure.spelled import score_bytes
from headcount.text.encoding import encode
from tests.claims.conftest import MERGES, small_model
from tests.conftest import as_bytes

BEFORE = b"ba ab"


def sequences(spellings, text):
    """Every sequence of symbols that reaches the end of a text with its last one, and not before."""
    for symbol, spelling in enumerate(spellings):
        if spelling.startswith(text):
            yield (symbol,)
        elif text.startswith(spelling):
            yield from ((symbol, *rest) for rest in sequences(spellings, text[len(spelling) :]))


@torch.inference_mode()
def brute_force(model, tokens, before, text):
    """Σ P by reading each sequence from the very beginning."""
    start = [tokens.start, *tokens.encode(before).tolist()]
    mass = 0.0
    for sequence in sequences(tokens.spellings, text):
        hidden, _ = model(torch.tensor([[*start, *sequence[:-1]]]), model.start(1))
        logs = model.head.log_probs(hidden)[0, len(start) - 1 :].double()
        mass += math.exp(sum(float(row[symbol]) for row, symbol in zip(logs, sequence, strict=True)))
    return mass


def branch_after(model, tokens, before):
    encoded = encode(np.frombuffer(before + b"?", dtype=np.uint8), tokens)
    return next(branches(model, encoded, [len(encoded.ids) - 1]))


@pytest.mark.parametrize("text", [b" abab.", b" ab ", b" bb,", b"ababab\n", b"."])
def test_the_exact_sum_is_that_of_brute_force(wordpieces, text):
    model = small_model(wordpieces.vocabulary)
    found = exact(branch_after(model, wordpieces, BEFORE), text, Pieces(wordpieces.spellings))
    assert math.exp(found) == pytest.approx(brute_force(model, wordpieces, BEFORE, text), rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.text("ab ", min_size=1, max_size=9))
def test_paths_are_counted_as_they_are(word):
    spellings = [bytes([value]) for value in range(256)]
    for left, right in MERGES:
        spellings.append(spellings[left] + spellings[right])
    text = word.encode() + b"."
    prefixes = {sequence[:i] for sequence in sequences(spellings, text) for i in range(1, len(sequence))}
    assert Pieces(spellings).count(text) == len(prefixes)


def test_sweeps_give_the_same_within_their_error(wordpieces):
    """At the real size, where far more paths are met than are kept: the error is honest."""
    model, pieces, text = small_model(wordpieces.vocabulary), Pieces(wordpieces.spellings), b" abababababababa."
    branch = branch_after(model, wordpieces, BEFORE)
    whole, generator = exact(branch, text, pieces), np.random.default_rng(3)
    assert pieces.count(text) > 10 * KEPT
    found = [sampled(branch, text, pieces, generator) for _ in range(30)]
    assert all(0 < error < 0.1 for _, error in found)
    assert np.mean([abs(log - whole) <= 2 * error for log, error in found]) >= 0.85
    assert np.mean([math.exp(log - whole) for log, _ in found]) == pytest.approx(1, abs=0.01)


def test_the_error_of_sweeps_is_that_of_their_mean(monkeypatch):
    """The standard deviation of eight draws, not of all there are, over the root of their number, beside their mean."""
    masses = [0.1, 0.4, 0.2, 0.2, 0.3, 0.1, 0.2, 0.5]
    drawn = iter(map(math.log, masses))
    monkeypatch.setattr(segmentations, "_sweep", lambda *_: next(drawn))
    log, error = sampled(None, b"", None, None)
    assert log == pytest.approx(math.log(statistics.mean(masses)))
    assert error == pytest.approx(statistics.stdev(masses) / math.sqrt(8) / statistics.mean(masses))


def test_what_is_thinned_weighs_as_much_as_before():
    """The likeliest stay as they are; each of the others is expected to weigh what it weighed."""
    weights = np.array([0.5, 0.2, *(0.3 * np.arange(1, 9) / 36)])
    paths = [(0, symbol, 1, math.log(weight)) for symbol, weight in enumerate(weights)]
    generator, repeats = np.random.default_rng(0), 4_000
    mean = np.zeros(len(weights))
    for _ in range(repeats):
        kept = thinned(paths, 4, generator)
        assert len(kept) == 4 == len({symbol for _, symbol, _, _ in kept}) and paths[:2] == kept[:2]
        for _, symbol, _, log in kept:
            mean[symbol] += math.exp(log) / repeats
    assert mean == pytest.approx(weights, abs=0.01)
    assert thinned(paths, 10, generator) == paths


def test_few_paths_are_summed_exactly_however_long_the_word(wordpieces):
    model, pieces = small_model(wordpieces.vocabulary), Pieces(wordpieces.spellings)
    branch, generator = branch_after(model, wordpieces, BEFORE), np.random.default_rng(3)
    long, many = b" straightforwardly.", b" abababababababababab."
    found = total(branch, long, pieces, generator)
    assert found.error is None and found.paths == pieces.count(long) < MOST_PATHS
    assert found.bits == pytest.approx(exact(branch, long, pieces) / math.log(2))
    drawn = total(branch, many, pieces, generator)
    assert drawn.error is not None and drawn.paths == pieces.count(many) > MOST_PATHS


def test_words_of_twelve_letters_never_have_too_many_paths():
    everything = Pieces([b" " * (i == 0) + b"a" * j for i in range(2) for j in range(i, 13)])
    assert everything.count(b" " + 12 * b"a" + b".") == MOST_PATHS - 1


def test_other_segmentations_can_only_give_back(wordpieces):
    model, pieces = small_model(wordpieces.vocabulary), Pieces(wordpieces.spellings)
    text = BEFORE + b" abab. ab"
    encoded = encode(np.frombuffer(text, dtype=np.uint8), wordpieces)
    bits = np.concatenate(list(score_bytes(model, encoded))) / math.log(2)
    canonical = bits[len(BEFORE) : len(BEFORE) + 6].sum()
    found = exact(branch_after(model, wordpieces, BEFORE), b" abab.", pieces) / math.log(2)
    assert canonical + found > 0.01


def test_the_canonical_path_may_go_on_with_any_token_that_begins_so(wordpieces):
    """A lone space after the word is not asked for: ␣a would do as well."""
    model, pieces, text = small_model(wordpieces.vocabulary), Pieces(wordpieces.spellings), b" bb "
    branch, symbols = branch_after(model, wordpieces, BEFORE), wordpieces.encode(b" bb").tolist()
    after = branch
    for symbol in symbols:
        after = after.follow([0], [symbol])
    spaces = [i for i, spelling in enumerate(wordpieces.spellings) if spelling.startswith(b" ")]
    assert len(spaces) == 3
    expected = math.log2(np.exp(after.log_probs[0][spaces]).sum())
    assert ending(branch, text, symbols, pieces) == pytest.approx(expected, abs=1e-9)


def test_bytes_have_one_path_and_keep_the_chain_rule():
    model, text = small_model(256), as_bytes(b"some words here, and there")
    pieces = Pieces(text.tokens.spellings)
    bits = np.concatenate(list(score_bytes(model, text))) / math.log(2)
    branch = next(branches(model, text, [4]))
    found = total(branch, b" words ", pieces, np.random.default_rng(1))
    assert found.paths == 6 and found.error is None and found.bits == pytest.approx(-bits[4:11].sum(), abs=1e-4)
