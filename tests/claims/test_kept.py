"""What was measured is kept by what was asked, and measured again if it is damaged."""

import json

from headcount.claims.kept import kept


def test_the_same_question_is_answered_once(tmp_path):
    file, asked = tmp_path / "measured" / "run.json", []

    def measure(value):
        return lambda: asked.append(value) or {"value": value, "pair": (1, 2)}

    assert kept(file, ["weights", 1], measure(0.1)) == {"value": 0.1, "pair": [1, 2]}
    assert kept(file, ["weights", 1], measure(0.2)) == {"value": 0.1, "pair": [1, 2]}
    assert kept(file, ["others", 1], measure(0.3))["value"] == 0.3
    assert asked == [0.1, 0.3]


def test_what_is_damaged_or_edited_is_measured_again(tmp_path):
    file = tmp_path / "run.json"
    for wrong in (
        "{",
        "[]",
        "{}",
        lambda found: {**found, "measured": {"value": 9}},
        lambda found: {**found, "measured": None},
    ):
        kept(file, "asked", lambda: {"value": 1})
        file.write_text(wrong if isinstance(wrong, str) else json.dumps(wrong(json.loads(file.read_text()))))
        assert kept(file, "asked", lambda: {"value": 2}) == {"value": 2}
        file.unlink()
