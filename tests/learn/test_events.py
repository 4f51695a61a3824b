"""The log of a run: what is no event is left out."""

import json

from headcount.learn import events


def test_lines_that_are_no_events_are_left_out_and_counted(tmp_path):
    path = tmp_path / "metrics.jsonl"
    step = {"event": "step", "step": 1, "bytes": 8, "seconds": 0.5, "bits_per_byte": 7.9}
    evaluated = {"event": "evaluated", "step": 1, "bits_per_byte": 8.0, "protocol": {}}
    good = [step, {"event": "stopped", "at": 1}, evaluated]
    bad = [{}, {"event": 3}, [1], "step", None, {"event": "step", "step": 2}, {"event": "sampled", "step": 1}]
    bad += [{**step, "bytes": None}, {**step, "bits_per_byte": float("nan")}, {**evaluated, "bits_per_byte": "x"}]
    bad += [{**evaluated, "protocol": None}, {"event": "sampled", "step": "x", "text": "3"}]
    lines = [json.dumps(line) for line in [*good, *bad]]
    path.write_text("\n".join([lines[3], *lines, "{not json", '{"event": "torn", "at": 1}']))
    assert events.read(path) == good
    assert events.lines(path, events.is_event) == (good, 1 + len(bad) + 1)
    events.cut(path, 1)
    assert events.read(path) == good[:2] and not events.lines(path, events.is_event).damaged
