"""The commands as a user types them: streams, exit codes, odd texts (fault table, rows 10, 18, 20)."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headcount.cli import COMMANDS, run
from tests.conftest import make_text

HEADCOUNT = [sys.executable, "-m", "headcount"]
SMALL = ["--set", "model.width=8", "--set", "evaluate.limit=256", "--steps", "3"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    (folder / "my.txt").write_bytes(make_text(20_000))
    assert run(["train", str(folder / "my.txt"), "--run", str(folder / "run"), *SMALL]) == 0
    return folder / "run"


def test_help_is_fast_and_names_every_command():
    """In processor time: on a busy machine the clock says nothing."""
    seconds = []
    for _ in range(3):
        before = os.times()
        done = subprocess.run([*HEADCOUNT, "--help"], capture_output=True, text=True, check=True)
        after = os.times()
        seconds.append(sum(after[2:4]) - sum(before[2:4]))  # of the children
    assert all(f" {name} " in done.stdout and about in done.stdout for name, about in COMMANDS.items())
    assert 0 < min(seconds) < 0.5


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name, capsys):
    assert run([name, "--help"]) == 0
    assert "Usage: headcount" in capsys.readouterr().out


def test_train_prints_the_figure_on_standard_output_and_the_rest_elsewhere(tmp_path, text_file, capsys):
    assert run(["train", str(text_file), "--run", str(tmp_path / "r"), *SMALL]) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 1 and "bits per byte" in said.out and "carried" in said.out
    assert "step 3/3" in said.err or "step 1/3" in said.err
    assert "headcount generate" in said.err and "bytes/s" in said.err and "MB" in said.err
    assert run(["train", str(text_file), "--run", str(tmp_path / "j"), *SMALL, "--json"]) == 0
    figure = json.loads(capsys.readouterr().out)
    assert figure["unit"] == "bits per byte" and figure["protocol"]["name"] == "carried"
    assert run(["evaluate", str(tmp_path / "j"), "--limit", "256", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == figure["value"]


def test_runs_are_named_after_the_text(tmp_path, text_file, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for expected in ("my", "my-2"):
        assert run(["train", "my.txt", *SMALL]) == 0
        assert (tmp_path / "runs" / expected / "recipe.toml").exists()
    assert run(["train", "my.txt", "--run", "runs/my", *SMALL]) == 2
    assert "headcount resume runs/my" in capsys.readouterr().err


def test_evaluate_score_and_info_speak_json(trained, text_file, capsys):
    assert run(["evaluate", str(trained), "--text", str(text_file), "--limit", "300", "--json"]) == 0
    figure = json.loads(capsys.readouterr().out)
    part = text_file.with_name("part")
    part.write_bytes(text_file.read_bytes()[:300])
    assert run(["score", str(trained), str(part), "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    assert len(scored["bits"]) == scored["bytes"] == 300
    assert scored["bits_per_byte"] == pytest.approx(figure["value"], rel=1e-9)
    assert run(["score", str(trained), str(part)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 300 and float(lines[0].split("\t")[2]) == pytest.approx(scored["bits"][0], abs=1e-4)
    for what in (str(trained), "recipes/tiny/sha_rnn.toml"):
        assert run(["info", what, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["model"] == "sha-rnn"


def test_info_shows_the_published_beside_the_computed(capsys):
    expected = {
        "0heads": ("50,615,501", "50,615,501", "51M", "1.312", "1.330"),
        "1head": ("53,773,517", "51,674,317", "52M", "1.100", "1.076"),
        "4heads": ("63,247,565", "54,850,765", "54M", "1.096", "1.068"),
    }
    for name, figures in expected.items():
        assert run(["info", f"recipes/paper/sha_rnn_{name}.toml"]) == 0
        printed = capsys.readouterr().out
        assert all(figure in printed for figure in figures), printed
        assert "merity2019" in printed and "state bytes" in printed and "flops" in printed


def test_info_counts_per_token_where_tokens_are_no_bytes(capsys):
    for recipe, unit in (("sha_rnn_1head", "byte"), ("transformer_xl_wikitext103_standard", "token")):
        assert run(["info", f"recipes/paper/{recipe}.toml"]) == 0
        assert re.findall(r"flops per (\w+)", capsys.readouterr().out) == [unit]
        assert run(["info", f"recipes/paper/{recipe}.toml", "--json"]) == 0
        assert f"flops_per_{unit}" in json.loads(capsys.readouterr().out)


def test_models_and_corpora(capsys):
    assert run(["models"]) == 0 and "sha-rnn" in capsys.readouterr().out
    assert run(["corpora", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) >= {
        "stdlib",
        "enwik8",
        "text8-part",
        "wikitext-103-raw",
        "wikipedia",
    }


def test_pack_gives_a_file_that_every_command_takes(trained, tmp_path, text_file, capsys):
    packed = str(tmp_path / "model.hc")
    assert run(["pack", str(trained), "-o", packed]) == 0
    capsys.readouterr()
    assert run(["info", packed]) == 0 and "sha-rnn" in capsys.readouterr().out
    assert run(["evaluate", packed, "--text", str(text_file), "--limit", "200", "--json"]) == 0
    ours = json.loads(capsys.readouterr().out)
    assert run(["evaluate", str(trained), "--text", str(text_file), "--limit", "200", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == ours["value"]
    assert run(["score", packed, str(text_file), "--json"]) == 0


def generate(*arguments, **options):
    return subprocess.run([*HEADCOUNT, "generate", *map(str, arguments)], capture_output=True, check=False, **options)


def test_generate_streams_raw_bytes_and_takes_any_prompt(trained):
    one = generate(trained, "Once ", "--bytes", 40, "--seed", 3)
    again = generate(trained, "-", "--bytes", 40, "--seed", 3, input=b"Once ")
    assert one.returncode == 0 and len(one.stdout) == 40 and one.stdout == again.stdout and not one.stderr
    for prompt in (b"", b"\x00\xff\xfe", bytes(range(256))):
        done = generate(trained, "-", "--bytes", 5, input=prompt)
        assert done.returncode == 0 and len(done.stdout) == 5
    assert generate(trained, "--bytes", 7, "--temperature", 0).stdout.__len__() == 7


def test_generate_stops_cleanly_when_the_reader_goes_or_at_ctrl_c(trained):
    for _ in range(2):
        process = subprocess.Popen(
            [*HEADCOUNT, "generate", str(trained), "--bytes", "1000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.wait(20) == 0 and process.stderr.read() == b""
        process.stderr.close()
    process = subprocess.Popen(
        [*HEADCOUNT, "generate", str(trained), "--bytes", "1000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.read(10)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130 and err == b"headcount: interrupted\n"


def test_generate_on_a_terminal_escapes_what_could_disturb_it():
    from headcount.cli.terminal import Escaper

    escape = Escaper()
    assert escape(b"a\x1b[31m\x00\x7f\n\t") == "a\\x1b[31m\\x00\\x7f\n\t"
    assert escape(b"\xc3") == "" and escape(b"\xa9\xff.") == "é\\xff."
    assert escape("\u202e\u0085".encode()) == "\\xe2\\x80\\xae\\xc2\\x85"
    assert escape(b"\xe2\x82", final=True) == "\\xe2\\x82"


def test_wrong_numbers_for_use_are_refused(trained, text_file, capsys):
    for arguments in (
        ["generate", str(trained), "--temperature", "-1"],
        ["generate", str(trained), "--top-k", "0"],
        ["generate", str(trained), "--top-p", "2"],
        ["generate", str(trained), "--bytes", "-5"],
        ["generate", str(trained), "--seed", "-1"],
        ["evaluate", str(trained), "--split", "tset"],
        ["evaluate", str(trained), "--checkpoint", "99"],
        ["evaluate", str(trained), "--window", "0"],
        ["evaluate", str(trained), "--protocol", "sliding"],
        ["evaluate", str(trained), "--text", str(text_file) + "x"],
        ["pack", str(trained), "-o", str(trained / "no" / "such" / "folder")],
    ):
        assert run(arguments) == 2, arguments
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [["evaluate"], ["evaluate", "--curve", "context"], ["probe", "copy"], ["recl"]])
def test_a_text_has_no_splits(trained, text_file, capsys, command):
    assert run([*command, str(trained), "--split", "valid", "--text", str(text_file)]) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.count("\n") == 1 and "--split valid is of the run's own corpus" in said.err


def test_the_command_of_a_figure_gives_it_again(tmp_path, text_file, capsys):
    arguments = ["train", str(text_file), "--run", str(tmp_path / "r"), *SMALL, "--json"]
    assert run([*arguments, "--set", "evaluate.protocol=merity2019", "--set", "evaluate.limit=500"]) == 0
    figure = json.loads(capsys.readouterr().out)
    assert figure["corpus"]["bytes"] == 500 and figure["bytes"] == 480
    assert run([*shlex.split(figure["command"])[1:], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["value"], again["corpus"]) == (figure["value"], figure["corpus"])


def test_use_of_an_edited_recipe_is_refused(trained, tmp_path, capsys):
    shutil.copytree(trained, tmp_path / "run")
    file = tmp_path / "run" / "recipe.toml"
    file.write_text(file.read_text().replace("eps = 1e-12", "eps = 0.5"))
    for arguments in (["evaluate", str(tmp_path / "run")], ["generate", str(tmp_path / "run")]):
        assert run(arguments) == 2
        assert "model.eps was 1e-12, is 0.5" in capsys.readouterr().err


def test_a_lone_hyphen_is_standard_input_only_where_a_text_is_expected(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["pack", str(trained), "-o", "-"]) in (0, 2) and not (tmp_path / "<standard input>").exists()
    (tmp_path / "t.txt").write_text("some text")
    for command in (["score", str(trained), "t.txt", "--html"], ["inspect", "attention", str(trained), "t.txt"]):
        capsys.readouterr()
        assert run([*command, "-o", "-"]) == 0 and capsys.readouterr().out.startswith("<!doctype html>")
    assert not (tmp_path / "<standard input>").exists() and not (tmp_path / "-").exists()
    (tmp_path / "long.txt").write_bytes(bytes(50_001))
    assert run(["score", "nowhere", "long.txt", "--html"]) == 2  # said before a model is loaded
    assert "at most 50,000" in capsys.readouterr().err
    done = subprocess.run(
        [*HEADCOUNT, "score", str(trained), "--json", "-"], input=b"some text", capture_output=True, check=False
    )
    assert json.loads(done.stdout)["bytes"] == 9
    for command in ("score", "train"):
        arguments = [*HEADCOUNT, command, *([str(trained)] if command == "score" else []), "-"]
        done = subprocess.run(arguments, input=b"", capture_output=True, check=False)
        assert done.returncode == 2 and b"standard input" in done.stderr


def test_streams_that_are_closed_or_speak_ascii(trained, tmp_path, text_file):
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*HEADCOUNT, "evaluate", str(trained)], capture_output=True, env=ascii_only, check=False)
    assert done.returncode == 0 and b"bits per byte" in done.stdout
    train = " ".join([*HEADCOUNT, "train", str(text_file), "--run", str(tmp_path / "r"), *SMALL])
    assert subprocess.run(f"{train} >&- 2>&-", shell=True, check=False).returncode == 0
    train = train.replace(str(tmp_path / "r"), str(tmp_path / "s"))
    subprocess.run(f"{train} 2>&1 | head -c 1 > {tmp_path / 'head'}", shell=True, check=False)
    assert (tmp_path / "s" / "best.json").exists()


def test_a_window_that_no_memory_holds_is_refused(trained, capsys):
    assert run(["evaluate", str(trained), "--window", "100000000000"]) == 2
    assert run(["evaluate", str(trained), "--window", "16000000", "--limit", "100"]) == 0


# Odd texts (row 20)


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 1023])
def test_texts_that_are_too_short_are_refused(content, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.txt").write_bytes(content)
    assert run(["train", "short.txt"]) == 2
    assert "short.txt" in capsys.readouterr().err and not (tmp_path / "runs").exists()


def test_one_byte_is_enough_to_score(trained, tmp_path, capsys):
    (tmp_path / "one").write_bytes(b"x")
    assert run(["score", str(trained), str(tmp_path / "one"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == 1
    assert run(["evaluate", str(trained), "--text", str(tmp_path / "one")]) == 0


def test_a_pipe_in_the_file_system_is_refused_and_standard_input_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    assert run(["train", "pipe"]) == 2
    assert "not a regular file" in capsys.readouterr().err
    done = subprocess.run([*HEADCOUNT, "train", "-", *SMALL], input=make_text(5_000), capture_output=True, check=False)
    assert done.returncode == 0 and (tmp_path / "runs" / "text" / "best.json").exists()
    assert run(["resume", "runs/text"]) == 0


# No pickle (row 10)


def test_no_command_ever_unpickles(tmp_path, text_file):
    code = f"""
import sys
seen = []
sys.addaudithook(lambda event, args: seen.append(args) if event == "pickle.find_class" else None)
from headcount.cli import run
small = {SMALL!r}
folder = {str(tmp_path)!r}
assert run(["train", {str(text_file)!r}, "--run", folder + "/run", *small]) == 0
assert run(["resume", folder + "/run", "--steps", "5"]) == 0
assert run(["pack", folder + "/run", "-o", folder + "/packed"]) == 0
for source in (folder + "/run", folder + "/packed"):
    assert run(["evaluate", source, "--text", {str(text_file)!r}, "--limit", "50"]) == 0
    assert run(["generate", source, "--bytes", "3"]) == 0
    assert run(["score", source, {str(text_file)!r}]) == 0
assert not seen, seen
import pickle
import fractions
pickle.loads(pickle.dumps(fractions.Fraction(1, 2)))
assert seen, "the hook does not see what it should"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_a_pickle_is_refused_wherever_a_model_is_expected(trained, tmp_path, capsys):
    import pickle

    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "executed",))

    for name in ("model.pt", "model.safetensors"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        assert run(["generate", str(tmp_path / name)]) == 3
        assert run(["train", str(tmp_path / name), "--from", str(tmp_path / name)]) == 3
    assert not (tmp_path / "executed").exists()
