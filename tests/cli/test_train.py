"""How a training ends: its figure, its report, and what to type next."""

import os
import subprocess
import sys

from headcount.cli import run

SMALL = ["--set", "model.width=8", "--set", "evaluate.limit=256", "--steps", "1"]


def test_the_report_is_there_though_nobody_reads_the_figure(tmp_path, text_file):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "headcount", "train", str(text_file), "--run", str(tmp_path / "r"), *SMALL]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert (tmp_path / "r" / "report.html").read_text().endswith("</html>\n")


def test_the_report_is_named_after_the_figure_and_one_is_not_many(tmp_path, text_file, capsys):
    assert run(["train", str(text_file), "--run", str(tmp_path / "r"), *SMALL]) == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 1 and f"The report, for a browser: {tmp_path / 'r' / 'report.html'}" in said.err
    assert "1 thread\n" in said.err and "1 step of 8" in said.err
    assert run(["resume", str(tmp_path / "r")]) == 0
    assert "is finished: 1 step;" in capsys.readouterr().err
