"""Runs of every kind of token, from a recipe to a packed file: figures, scores, writing, and what is refused."""

import json
import math
import shutil

import numpy as np
import pytest

import headcount as hc
from headcount.cli import run as command
from headcount.errors import DataError, RequestError
from headcount.learn.plan import settle
from headcount.recipe import read
from headcount.use.compare import compare
from tests.conftest import make_text, tiny_recipe_text

KINDS = {
    "bytes": [],
    "characters": ["tokens.kind=characters"],
    "text8": ["tokens.kind=characters", "tokens.alphabet=text8"],
    "words": ["tokens.kind=words"],
    "words-cut": ["tokens.kind=words", "tokens.vocabulary=40"],
    "wordpieces": ["tokens.kind=wordpieces", "tokens.vocabulary=300"],
    "legacy-txl": ["tokens.kind=legacy-txl"],
}
EXACT = {"bytes", "characters", "text8", "wordpieces"}
LEARNT = ["characters", "words", "wordpieces"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("kinds")
    plain = make_text(20_000).replace(b",", b"")
    (path / "my.txt").write_bytes("Öl für 3 €\n".encode() * 20 + plain)
    (path / "letters.txt").write_bytes(bytes(b if 97 <= b <= 122 else 32 for b in plain))
    for name in ("my", "letters"):
        (path / f"{name}.toml").write_text(tiny_recipe_text(path / f"{name}.txt"))
    return path


@pytest.fixture(scope="module")
def trained(folder):
    """Runs by kind, each trained when it is first asked for."""
    runs = {}

    def of(kind):
        if kind not in runs:
            recipe = folder / ("letters.toml" if kind == "text8" else "my.toml")
            runs[kind] = hc.train(recipe, run=folder / kind, set=KINDS[kind])
        return runs[kind]

    return of


@pytest.mark.parametrize("kind", KINDS)
def test_scores_sum_to_the_figure_and_the_figure_says_what_it_is_of(kind, folder, trained):
    run = trained(kind)
    lm, source = hc.load(run.path), folder / ("letters.txt" if kind == "text8" else "my.txt")
    content = source.read_bytes()[4_000:5_500]
    (folder / "part.txt").write_bytes(content)
    bits = lm.score(content)
    figure = lm.evaluate(folder / "part.txt")
    assert bits.shape == (len(content),) and (bits >= 0).all()
    assert bits.sum() * math.log(2) == pytest.approx(figure.nats, rel=1e-5)
    left = len(content.replace(b"\n", b"")) if kind == "legacy-txl" else len(content)
    assert figure.bytes == left and figure.value == pytest.approx(figure.nats / math.log(2) / left)
    if kind in EXACT:
        assert figure.tokens["exact"] and figure.unit == "bits per byte"
    if kind in ("words-cut", "legacy-txl"):
        assert not figure.tokens["exact"] and figure.unit == "bits per byte, not lossless"
        assert "cannot be restored" in str(figure)
    if kind != "bytes":
        assert f"{figure.tokens['scored']:,} tokens" in str(figure) and "perplexity" in str(figure)
    assert figure.tokens["vocabulary"] == lm.model.config.vocabulary == lm.tokens.vocabulary


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_writes_bytes_and_goes_on_from_any_prompt(kind, trained):
    lm = hc.load(trained(kind).path)
    for prompt in (b"", b"the ", b"unheard") if kind == "text8" else (b"", b"the ", b"\xff\xe2 unheard\n", b"x" * 300):
        written = lm.generate(prompt, 50, seed=3)
        assert len(written) == 50 and written == lm.generate(prompt, 50, seed=3)
        assert written[:20] == lm.generate(prompt, 20, seed=3)
        assert bytes(lm.generate(prompt, 50, seed=3, stream=True)) == written
    if kind == "text8":
        assert set(written) <= set(b" abcdefghijklmnopqrstuvwxyz")
        with pytest.raises(RequestError, match="27 symbols"):
            lm.generate(b"The", 5)
        with pytest.raises(RequestError, match="27 symbols"):
            lm.score(b"The")


@pytest.mark.parametrize("kind", KINDS)
def test_packed_and_loaded_is_the_same(kind, trained, tmp_path):
    lm = hc.load(trained(kind).path)
    lm.save(tmp_path / "model.hc")
    packed = hc.load(tmp_path / "model.hc")
    assert type(packed.tokens) is type(lm.tokens) and packed.tokens.sha256 == lm.tokens.sha256
    assert np.array_equal(packed.score(b"some text"), lm.score(b"some text"))
    assert packed.generate(b"", 30) == lm.generate(b"", 30)


@pytest.mark.parametrize("kind", KINDS)
def test_the_run_keeps_what_its_tokens_learnt(kind, trained):
    run = trained(kind)
    learnt = run.tokens.learnt()
    assert run.tokens_file.exists() == (learnt is not None) == (run.recipe.tokens.sha256 is not None)
    assert run.recipe.tokens.sha256 == run.tokens.sha256
    assert run.recipe.model["vocabulary"] == run.tokens.vocabulary
    evaluated = [e for e in run.events() if e["event"] == "evaluated"]
    assert all(e["tokens"]["sha256"] == run.tokens.sha256 for e in evaluated)
    assert hc.load(run.path).evaluate(limit=500).nats == next(
        e["nats"] for e in evaluated if e["step"] == hc.load(run.path).facts["step"]
    )


@pytest.mark.parametrize("kind", LEARNT)
def test_damaged_or_missing_tokens_are_exit_3_and_a_sentence(kind, trained, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(trained(kind).path, run)
    file = run / "tokens.json"
    whole = json.loads(file.read_text())
    other = {key: (value[:-1] if isinstance(value, list) else value) for key, value in whole.items()}
    for damage in (
        "",
        "{}",
        "[1]",
        '{"kind": "words", "words": [3]}',
        file.read_text()[:40],
        json.dumps(other),
        '{"kind": "wordpieces", "merges": [[-1, 1]]}',
        "\udcff",
    ):
        file.write_bytes(damage.encode(errors="surrogateescape"))
        for asked in (["generate", str(run)], ["evaluate", str(run)], ["resume", str(run), "--steps", "20"]):
            capsys.readouterr()
            assert command(asked) == 3, (damage, asked)
            said = capsys.readouterr().err
            assert said.count("\n") == 1 and "damaged" in said and "tokens.json" in said, said
    file.unlink()
    with pytest.raises(DataError, match=r"tokens\.json: No such file"):
        hc.load(run)


def test_what_may_be_ranked(trained):
    runs = {kind: str(trained(kind).path) for kind in ("bytes", "characters", "wordpieces", "words-cut", "legacy-txl")}
    groups = compare(list(runs.values()))
    assert {row.run for row in groups[0].rows} == {runs["bytes"], runs["characters"], runs["wordpieces"]}
    apart = {row.run: group.differs for group in groups[1:] for row in group.rows}
    assert set(apart) == {runs["words-cut"], runs["legacy-txl"]}
    assert all("restored" in why and "not lossless" in why for why in apart.values())
    assert "divided by" in apart[runs["legacy-txl"]]
    flops = {row.run: row.flops for row in groups[0].rows}
    assert flops[runs["wordpieces"]] < flops[runs["bytes"]]  # fewer tokens, though each has more symbols


@pytest.mark.parametrize("kind", ["text8", *LEARNT])
def test_starting_from_weights_takes_their_tokens(kind, folder, trained, tmp_path):
    run, text = trained(kind), tmp_path / "new.txt"
    text.write_bytes((folder / ("letters.txt" if kind == "text8" else "my.txt")).read_bytes()[3_000:9_000])
    for start in ("run", "packed"):
        hc.load(run.path).save(tmp_path / "packed.hc")
        source = run.path if start == "run" else tmp_path / "packed.hc"
        tuned = hc.train(text, run=tmp_path / start, start_from=source, steps=2, set=["evaluate.limit=300"])
        assert tuned.tokens.sha256 == run.tokens.sha256 and type(tuned.tokens) is type(run.tokens)
        assert hc.load(tuned.path).score(b"abc").shape == (3,)
        assert hc.resume(tuned.path, steps=3).events()[-1]["at"] == 3
    for other in ("tokens.kind=bytes", "tokens.kind=legacy-txl"):
        with pytest.raises(RequestError, match=r"the weights of --from read"):
            hc.train(text, run=tmp_path / "no", start_from=run.path, steps=2, set=[other])
    if kind == "text8":
        with pytest.raises(RequestError, match=r"alphabet = 'corpus': the weights of --from read 'text8'"):
            hc.train(folder / "my.toml", run=tmp_path / "no", start_from=run.path, set=["tokens.kind=characters"])
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["tokens.kind=wrds"], "tokens.kind"),
        (["tokens.kind=words", "tokens.vocabulary=2"], "tokens.vocabulary"),
        (["tokens.kind=wordpieces", "tokens.vocabulary=200"], "at least the 256 bytes"),
        (["tokens.kind=characters", "tokens.vocabulary=200"], "at least the 256 bytes"),
        (["tokens.vocabulary=300"], "the same for every corpus"),
        (["tokens.alphabet=text8"], "of characters, not of bytes"),
        (["tokens.kind=characters", "tokens.alphabet=text8"], "27 symbols of text8"),
        (["tokens.kind=words", "tokens.sha256=abc"], "of this corpus are others"),
        (["tokens.kind=words", "model.vocabulary=77"], "model.vocabulary = 77"),
        (["tokens.kind=words", "evaluate.limit=1", "evaluate.protocol=merity2019"], "too few"),
    ],
    ids=str,
)
def test_recipes_that_cannot_be(settings, sentence, folder, tmp_path, capsys):
    sets = [part for one in settings for part in ("--set", one)]
    assert command(["train", str(folder / "my.toml"), "--run", str(tmp_path / "no"), *sets]) == 2
    said = capsys.readouterr().err
    assert sentence in said and "fault of ours" not in said and not (tmp_path / "no").exists()


@pytest.mark.parametrize("text", [b" " * 3_000 + b"a b " * 200, b"\n" * 3_000 + b"word", b"x" * 3_000])
@pytest.mark.parametrize("kind", ["words", "legacy-txl"])
def test_texts_with_hardly_a_token_train_or_are_refused(kind, text, tmp_path, capsys):
    (tmp_path / "few.txt").write_bytes(text)
    (tmp_path / "few.toml").write_text(tiny_recipe_text(tmp_path / "few.txt"))
    code = command(
        ["train", str(tmp_path / "few.toml"), "--run", str(tmp_path / "run"), "--set", f"tokens.kind={kind}"]
    )
    said = capsys.readouterr().err
    assert code in (0, 2) and "fault of ours" not in said, said
    assert code == 0 or "too few" in said


@pytest.mark.parametrize("kind", ["words-cut", "wordpieces"])
def test_pages_of_a_run(kind, trained, tmp_path):
    run, text = str(trained(kind).path), tmp_path / "text"
    text.write_bytes(make_text(600))
    assert command(["report", run, "-o", str(tmp_path / "report.html")]) == 0
    assert command(["score", run, str(text), "--html", "-o", str(tmp_path / "score.html")]) == 0
    assert command(["info", run]) == 0 and command(["compare", run, "--json"]) == 0
    assert "<html" in (tmp_path / "score.html").read_text().lower()


@pytest.mark.parametrize("kind", ["bytes", "words-cut", "legacy-txl"])
def test_score_and_evaluate_agree_and_every_place_says_whether_the_text_can_be_restored(
    kind, folder, trained, tmp_path, capsys
):
    source, part = str(trained(kind).path), tmp_path / "part.txt"
    part.write_bytes((folder / "my.txt").read_bytes()[4_000:5_000])
    lossy = kind != "bytes"
    capsys.readouterr()
    assert command(["evaluate", source, "--text", str(part), "--json"]) == 0
    figure = json.loads(capsys.readouterr().out)
    assert command(["score", source, str(part), "--json"]) == 0
    said = capsys.readouterr()
    scored = json.loads(said.out)
    assert scored["bits_per_byte"] == pytest.approx(figure["value"], rel=1e-5) and scored["unit"] == figure["unit"]
    assert scored["counted_over"] == figure["bytes"] and len(scored["bits"]) == scored["bytes"] == 1_000
    assert f"{figure['value']:.4f} {figure['unit']} (carried" in said.err
    assert ("of them counted" in said.err) == (kind == "legacy-txl")
    page = tmp_path / "page.html"
    assert command(["score", source, str(part), "--html", "-o", str(page)]) == 0
    assert f"{figure['value']:.3f} {figure['unit']}, from an empty state" in page.read_text()
    assert command(["report", source, "-o", str(page)]) == 0
    made = page.read_text()
    assert ("not lossless" in made) == lossy and f"<small>{figure['unit']}</small>" in made
    for section in ("What surprises it", "Where the bits go"):
        about = made.partition(f"<h2>{section}</h2>")[2].partition("</p>")[0]
        assert (" bits per byte, not lossless" in about) == lossy and "bits per byte" in about
    assert ("training, not lossless" in made) == lossy == ("validation, not lossless" in made)
    assert ("not lossless" in compare([source])[0].measured_on) == lossy


def test_the_difference_of_what_can_be_restored_and_what_cannot_is_no_comparison(folder, trained, tmp_path, capsys):
    part, page = tmp_path / "part.txt", tmp_path / "page.html"
    part.write_bytes((folder / "my.txt").read_bytes()[4_000:4_500])
    for one, other, apart in (("bytes", "legacy-txl", True), ("words-cut", "legacy-txl", False)):
        arguments = ["score", str(trained(one).path), str(part), "--html", "--against", str(trained(other).path)]
        capsys.readouterr()
        assert command([*arguments, "-o", str(page)]) == 0
        made = page.read_text()
        assert "bits per byte, not lossless" in made
        assert ("Not comparable" in made) == apart == ("Not comparable" in capsys.readouterr().err)


def test_a_run_says_whether_what_it_learns_from_can_be_restored(trained):
    for kind in ("bytes", "legacy-txl"):
        begun = trained(kind).events()[0]
        assert begun["event"] == "started" and begun["exact"] == (kind == "bytes")


@pytest.mark.parametrize(("kind", "said"), [("characters", True), ("words", False)])
def test_bands_of_symbols_that_are_not_in_the_order_of_frequency_are_said(kind, said, folder):
    sentences = []
    recipe = read(folder / "my.toml", [*KINDS[kind], "model.cutoffs=[100]"])
    settle(recipe, sentences.append)
    assert any("characters are not in the order of their frequency" in sentence for sentence in sentences) == said
