"""Links within the repository: every file that a page names is there, and so is every heading."""

import re
from pathlib import Path

import pytest

PAGES = [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]


def prose(page):
    """A page without what it quotes: a link there is none."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.S | re.M)


def anchors(page):
    """What headings are called in addresses: lower case, hyphens for spaces, no other marks; -1, -2 … where equal."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    found = []
    for heading in re.findall(r"^#+ +(.+?) *#*$", text, re.M):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        earlier = sum(re.sub(r"-\d+$", "", other) == name for other in found)
        found.append(f"{name}-{earlier}" if earlier else name)
    return found


def broken(page):
    """The links of a page that lead nowhere."""
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)(?: +\"[^\"]*\")?\)|^\[[^\]]+\]: +(\S+)", prose(page), re.M):
        address = "".join(target)
        if re.match(r"[a-z]+:", address):
            continue
        file, _, anchor = address.partition("#")
        there = page.parent / file if file else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            wrong.append(address)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page):
    assert broken(page) == []


def test_what_leads_nowhere_is_found(tmp_path):
    (tmp_path / "other.md").write_text("# A `b`, [c](d): e!\n\n## Twice\n\n## Twice\n\n```sh\n# none\n```\n")
    good = ["other.md", "other.md#a-b-c-e", "other.md#twice-1", "#here", "https://nowhere/x", "../" + tmp_path.name]
    bad = ["gone.md", "other.md#none", "other.md#twice-2", "#there"]
    links = "\n".join(f"[x]({address})" for address in good + bad)
    page = tmp_path / "page.md"
    page.write_text(f"# Here\n{links}\n`[x](quoted.md)`\n\n[y]: also.md\n")
    assert broken(page) == [*bad, "also.md"]
