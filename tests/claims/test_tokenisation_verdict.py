"""The verdict says what the numbers say, and something else for other numbers."""

import copy

import pytest

from headcount.claims.tokenisation_verdict import first_letter, group, uneven, verdict


def guessed():
    own = {"first": 0.1, "first_piece": 0.5, "within": 0.9, "wrong": 20.0, "multiplied": 9.0}
    return {
        "words": 50,
        "pieces": 3.0,
        "without": {"first": 0.2, "within": 0.5, "wrong": 50.0},
        "with": own,
        "saved": {"guesses": 30.0, "error": 3.0},
    }


def figure(kind, value):
    protocol = {"name": "carried", "streams": 1, "segment": 512, "state": "carried", "window": None, "not_scored": 0}
    return {
        "value": value,
        "unit": "bits per byte",
        "nats": 693.1,
        "bytes": 1_000,
        "protocol": protocol,
        "corpus": {"name": "my.txt", "split": "valid, whole lines", "sha256": "f" * 64},
        "tokens": {"kind": kind, "vocabulary": 256, "scored": 1_000, "exact": True},
        "model": {"kind": "sha-rnn", "step": 3, "sha256": "a" * 64},
        "command": "headcount claim tokenisation --text my.txt",
        "date": "2026-11-18T00:00:00+00:00",
    }


def made(name, budget, *, apart=0.0, error=0.01):
    kind = name.split()[0]
    return {
        "run": f"{name}-{budget}",
        "tokens": {"name": name, "kind": kind, "vocabulary": 256, "bytes_per_token": 1.0},
        "budget": budget,
        "parameters": {"body": 10, "vocabulary": 20},
        "window": {"tokens": 4, "bytes": 4.0},
        "steps": 3,
        "bytes_read": 900,
        "seconds": 10.0,
        "restored": "f" * 64,
        "figure": figure(kind, 2.0 + apart),
        "bits": 1_000 * (2.0 + apart),
        "bits_per_byte": 2.0 + apart,
        "tokens_scored": 1_000,
        "bits_per_token": 2.0 + apart,
        "perplexity_per_token": 4.0 if kind == "bytes" else 100.0,
        "spread": 1.0,
        "against_bytes": {"difference": apart, "error": error, "blocks": 50},
        "beginning": {"excess": 0.1, "error": 0.02, "blocks": 50},
        "places": [{"place": place, "count": 10, "bits": 10.0 * (4 - place)} for place in range(3)],
        **measured(kind),
    }


def measured(kind):
    """What was found of single words."""
    return {
        "overstated": {
            "words": 20,
            "sampled": 1,
            "canonical": 50.0,
            "overstated": 0.0 if kind == "bytes" else 1.0,
            "share": 0.0 if kind == "bytes" else 0.02,
            "largest": [{"word": "␣it", "pieces": ["␣i", "t"], "bits": 9.0, "overstated": 0.5}],
            "deviation": 1e-5,
            "error": 0.1,
            "drawn_error": 0.01,
        },
        "guesses": guessed(),
        "spellings": {
            "cases": [{"written": "organise", "stem": 9.0, "choice": 1.0, "other": 9.0} for _ in range(2)],
            "stem": 9.0,
            "choice": 1.0,
            "stem_error": 0.5,
            "choice_error": 0.25,
        },
        "names": {
            "first": {"names": 8, "bits": 20.0, "error": 1.0, "opening": 0.5},
            "later": {"names": 9, "bits": 10.0, "error": 0.5, "opening": 0.7},
        },
    }


@pytest.fixture
def record():
    runs = [made("bytes", "bytes"), made("wordpieces 1k", "bytes"), made("wordpieces 1k", "seconds")]
    return {
        "command": "headcount claim tokenisation --text my.txt",
        "version": "0.1.0",
        "seed": 7,
        "runs": runs,
        "held_out": {"bytes": 1_000, "sha256": "f" * 64},
        "left_out": {"words": "3 of 9 words are unknown"},
        "most_guesses": 100,
        "pairs": {"organize": [3, 2]},
    }


def changed(record, change):
    other = copy.deepcopy(record)
    for run in other["runs"]:
        change(run)
    return verdict(other)


def test_accounting_and_what_is_left_of_it(record):
    said = verdict(record)
    assert "none of it is left once all bits are counted over equal bytes" in said.split("\n\n")[0]
    assert "from 4.0 (bytes) to 100.0 (wordpieces 1k), a factor of 25" in said and "same order" in said
    record["runs"][0] = made("bytes", "bytes", apart=0.5)
    assert "another order: wordpieces 1k, bytes" in verdict(record)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"restored": "0" * 64}, "the tokens of wordpieces 1k-bytes spell other bytes"),
        ({"bits_per_token": 1.9}, "of wordpieces 1k-bytes the tokens have 1,900.0 bits and the bytes 2,000.0"),
        ({"bits_per_byte": 2.1}, "of wordpieces 1k-bytes"),
    ],
)
def test_accounting_is_claimed_only_if_the_bits_add_up_over_the_same_bytes(record, wrong, said):
    record["runs"][1].update(wrong)
    answer = verdict(record)
    assert "none of it is left" not in answer and "add up to the bits of the word" not in answer
    assert f"The bits do not add up here, so nothing can be said of accounting: {said}" in answer


def test_a_chain_rule_that_fails_is_said(record):
    record["runs"][0]["overstated"]["deviation"] = 99.0
    answer = verdict(record)
    assert "bytes miss the chain rule by 1e+02 bits" in answer and "none of it is left" not in answer


@pytest.mark.parametrize(
    ("apart", "answer", "evidence"),
    [
        (0.0, "Real is that", "no different beyond its error (+0.000 ± 0.010"),
        (-0.3, "against bytes: wordpieces 1k better at equal bytes", "better by 0.300 ± 0.010"),
        (0.3, "against bytes: wordpieces 1k worse at equal bytes", "worse by 0.300 ± 0.010"),
    ],
)
def test_learning_counts_beyond_its_error(record, apart, answer, evidence):
    record["runs"][1] = made("wordpieces 1k", "bytes", apart=apart)
    said = verdict(record)
    assert answer in said.split("\n\n")[0] and evidence in said
    assert ("what was learnt" in said) == (apart != 0)


def test_few_blocks_of_text_prove_little(record):
    """0.3 is three of its errors: of 50 blocks that is sure, of 2 it is not."""
    record["runs"][1] = made("wordpieces 1k", "bytes", apart=0.3, error=0.1)
    assert "worse by 0.300 ± 0.100" in verdict(record)
    record["runs"][1]["against_bytes"]["blocks"] = 2
    assert "no different beyond its error (+0.300 ± 0.100" in verdict(record)
    assert "what was learnt" not in verdict(record)


def test_what_had_other_seconds_is_not_judged_at_equal_seconds(record):
    record["runs"][2] = made("wordpieces 1k", "seconds", apart=-0.3)
    record["runs"].append(made("wordpieces 8k", "seconds", apart=-0.3))
    both = "wordpieces 1k and wordpieces 8k better at equal seconds"
    assert both in verdict(record) and "learnt for" not in verdict(record) and uneven(record["runs"]) == []
    record["runs"][2]["seconds"] = 10.9
    assert both in verdict(record)
    record["runs"][2]["seconds"] = 15.0
    answer, *rest = verdict(record).split("\n\n")
    assert "(against bytes: wordpieces 8k better at equal seconds)" in answer
    assert "Not judged at equal seconds: wordpieces 1k learnt for 15 seconds where bytes had 10." in answer
    (learning,) = [part for part in rest if part.startswith("Learning, at equal seconds")]
    assert "wordpieces 8k better" in learning and "wordpieces 1k is left out, its seconds were not equal" in learning
    for run, seconds in zip(record["runs"], (0.4, 0.4, 1.31, 0.2), strict=True):
        run["seconds"] = seconds
    answer = verdict(record).split("\n\n")[0]
    assert "wordpieces 1k learnt for 1.31 seconds where bytes had 0.4; wordpieces 8k learnt for 0.2 seconds" in answer
    assert "better at equal seconds" not in verdict(record)


def test_what_is_left_out_is_said(record):
    assert "Left out are words: 3 of 9 words are unknown." in verdict(record)


def test_canonical_segmentations(record):
    assert "too much, not too little: 2.00% ± 0.20% (wordpieces 1k)" in verdict(record)
    little = {"share": 0.0001, "overstated": 0.005, "error": 0.001}
    assert "next to nothing: 0.01% ± 0.00%" in changed(record, lambda run: run["overstated"].update(little))
    assert "checked, to 1e-05 bits" in verdict(record)
    unmeasured = changed(record, lambda run: run["overstated"].update(words=0))
    assert "segmentation" not in unmeasured and "checked" not in unmeasured


def test_what_is_overstated_is_said_only_beyond_its_error(record):
    """A share above nothing may be chance, and one below it may hide more: then its size is not known."""
    for unsure in ({"error": 0.9}, {"error": None}, {"words": 2, "error": 0.2}, {"share": 1e-4, "overstated": 0.005}):
        said = changed(record, lambda run, unsure=unsure: run["overstated"].update(unsure))
        assert "too much" not in said and "next to nothing" not in said and "points the other way" not in said
        assert "(it cannot be less than 0) is not measurable on so few words: " in said
    record["runs"].insert(2, made("wordpieces 8k", "bytes"))
    record["runs"][2]["overstated"]["error"] = 0.9
    said = verdict(record)
    assert "too much, not too little: 2.00% ± 0.20% (wordpieces 1k) of" in said
    assert "on so few words: 2.00% ± 1.80% (wordpieces 8k)." in said


def test_places(record):
    assert first_letter(record["runs"][0]) == (pytest.approx(3 / 5), pytest.approx(1 / 2))
    assert "Bits do sit at the beginning" in verdict(record)
    assert "first letters are 50.0% of all letters and take 60.0% ± 2.0% (bytes)" in verdict(record)
    end = changed(record, lambda run: run["beginning"].update(excess=-0.1))
    assert "do not sit at the beginning" in end and "that bits sit" not in end.split("\n\n")[0]
    for unsure in ({"error": 0.06}, {"error": None}, {"blocks": 2}):
        said = changed(record, lambda run, unsure=unsure: run["beginning"].update(unsure))
        assert "Whether bits sit at the beginning of words is not measurable here: first letters" in said
        assert "that bits sit" not in said


def test_places_are_said_of_the_kinds_they_are_true_of(record):
    record["runs"][0]["beginning"]["excess"] = -0.1
    said = verdict(record)
    differs = "Whether bits sit at the beginning of words differs: they do under wordpieces 1k"
    assert f"{differs} and they do not under bytes: first letters are 50.0%" in said
    assert "that bits sit at the beginning of words (wordpieces 1k)" in said.split("\n\n")[0]
    assert "however the text is cut" not in said
    record["runs"][0]["beginning"]["excess"] = 0.03
    assert f"{differs} and it is not measurable under bytes: first" in verdict(record)


def test_a_text_without_letters_has_no_places(record):
    none = {"excess": 0.0, "error": None, "blocks": 50}
    said = changed(record, lambda run: run.update(places=[{"place": 0, "count": 3, "bits": 4.0}], beginning=none))
    assert "first letters" not in said and "beginning of words" not in said
    assert first_letter({"places": []}) is None


def test_feedback(record):
    said = verdict(record)
    assert "helps under bytes and wordpieces 1k. Wrong guesses" in said
    assert "bytes 50.0 and 20.0, saved 30.00 ± 3.00" in said
    assert "about equally often under all kinds (20% to 20% of 50)" in said
    record["runs"][1]["guesses"]["saved"]["guesses"] = 1.0
    assert "helps under bytes and makes no measurable difference under wordpieces 1k" in verdict(record)
    record["runs"][1]["guesses"]["without"]["first"] = 0.6
    assert "in 20% (bytes) to 60% (wordpieces 1k) of 50 cases" in verdict(record)
    nothing = changed(record, lambda run: run["guesses"]["saved"].update(guesses=0.0))
    assert "under any kind" in nothing and "easier with feedback" not in nothing
    assert "password" not in changed(record, lambda run: run["guesses"].update(words=0))


def test_few_words_prove_no_feedback(record):
    said = changed(record, lambda run: run["guesses"].update(words=2, saved={"guesses": 30.0, "error": 2.0}))
    assert "helps under" in said  # 15 errors
    said = changed(record, lambda run: run["guesses"].update(words=2, saved={"guesses": 30.0, "error": 9.0}))
    assert "makes no measurable difference under any kind" in said and "easier with feedback" not in said
    record["runs"][0]["guesses"]["without"]["first"], record["runs"][1]["guesses"]["without"]["first"] = 0.0, 1.0
    assert "in 0% (bytes) to 100% (wordpieces 1k)" in verdict(record)
    few = changed(record, lambda run: run["guesses"].update(words=3))
    assert "about equally often under all kinds (0% to 100% of 3)" in few  # though neither share has spread


def test_feedback_that_costs_guesses_is_said(record):
    record["runs"][1]["guesses"]["saved"] = {"guesses": -0.427, "error": 0.069}
    said = verdict(record)
    assert "piece helps under bytes and costs more guesses than it saves under wordpieces 1k. Wrong" in said
    assert "that feedback costs more guesses than it saves (wordpieces 1k)" in said.split("\n\n")[0]
    assert "-0.43 ± 0.07" in said
    worse = changed(record, lambda run: run["guesses"].update(saved={"guesses": -0.427, "error": 0.069}))
    assert "every piece costs more guesses than it saves under bytes and wordpieces 1k. Wrong" in worse
    assert "easier with feedback" not in worse


def test_spellings(record):
    assert "costs 1.00 ± 0.25 (bytes), 1.00 ± 0.25 (wordpieces 1k) bits, in 2 places" in verdict(record)
    for case, choice in zip(record["runs"][1]["spellings"]["cases"], (2.0, 2.2), strict=True):
        case["choice"] = choice
    assert "dearer under wordpieces 1k than under bytes" not in verdict(record)  # 1.1 ± 0.1, but of two places
    for run in record["runs"]:
        run["spellings"]["cases"] = [copy.deepcopy(case) for case in run["spellings"]["cases"] for _ in range(4)]
    assert "dearer under wordpieces 1k than under bytes" in verdict(record)
    assert "no word of which" in changed(record, lambda run: run["spellings"].update(cases=[]))


def test_names(record):
    said = verdict(record)
    assert (
        "20.0 and 10.0 (bytes)" in said and "cheaper, beyond the error, under bytes and wordpieces 1k; in how" in said
    )
    record["runs"][1]["names"]["later"]["bits"] = 4.0
    assert "and the saving is largest for wordpieces 1k" in verdict(record)
    few = changed(record, lambda run: run["names"]["first"].update(names=2))
    assert "under wordpieces 1k and bytes; in how much they save, the kinds do not differ" in few
    assert "none saves beyond the error" in changed(record, lambda run: run["names"]["later"].update(bits=21.0))
    assert "No name comes back" in changed(record, lambda run: run["names"]["later"].update(bits=None))


def test_names_that_differ_within_their_errors_are_not_ranked(record):
    for run, first in zip(record["runs"], (20.0, 19.99, 20.0), strict=True):
        run["names"] = {
            "first": {"names": 8, "bits": first, "error": 1.0, "opening": 0.5},
            "later": {"names": 9, "bits": 10.0, "error": 1.0, "opening": 0.5},
        }
    assert "saving is largest" not in verdict(record) and "do not differ beyond the error" in verdict(record)
    large = changed(record, lambda run: [run["names"][which].update(error=5.0) for which in ("first", "later")])
    assert "none saves beyond the error" in large
    few = changed(record, lambda run: run["names"]["first"].update(names=2))  # half is saved, ± 0.07, of two names
    assert "none saves beyond the error" in few


def test_bytes_belong_to_both_budgets(record):
    assert [run["run"] for run in group(record["runs"], "seconds")] == ["bytes-bytes", "wordpieces 1k-seconds"]


def test_nothing_is_sure_without_an_error(record):
    def alone(run):
        run["guesses"]["saved"]["error"] = run["against_bytes"]["error"] = run["overstated"]["error"] = None
        run["names"]["first"]["error"] = None
        run["against_bytes"]["difference"] = 0.5

    said = changed(record, alone)
    assert "easier with feedback" not in said and "what was learnt" not in said and "none saves" in said
    assert "2.00% ± unknown (wordpieces 1k)" in said and "(+0.500 ± unknown bits per byte)" in said
