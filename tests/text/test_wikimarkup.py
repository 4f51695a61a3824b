"""Markup as text: rule by rule, and in linear time whatever is written."""

import time

import pytest

from headcount.text.wikimarkup import render, words_of_namespaces

RULES = {
    "plain": ("A sentence.", "A sentence."),
    "quotes": ("'''Bold''' and ''italic'' and '''''both'''''", "Bold and italic and both"),
    "link": ("[[Apple]]s and [[Pear (fruit)|pears]]", "Apples and pears"),
    "link with entity": ("[[AT&amp;T|AT&amp;T]]", "AT&T"),
    "file": ("a [[File:X.jpg|thumb|The [[caption]] of it]] b", "a b"),
    "file of another language": ("a [[Файл:X.jpg|мини|текст]] b", "a b"),
    "file by its options": ("a [[Attēls:X.jpg|thumb|250px|text]] b", "a b"),
    "category": ("text\n[[Category:Fruit]]", "text"),
    "link to a category": ("see [[:Category:Fruit]]", "see Category:Fruit"),
    "another language": ("text\n[[de:Apfel]]\n[[zh-min-nan:X]]", "text"),
    "link across wikis": ("[[wikt:apple|apple]]", "apple"),
    "outside": ("[http://x.org/y the site] and [//x.org z] [https://x.org]", "the site and z"),
    "brackets": ("an array[1] and [sic]", "an array[1] and [sic]"),
    "template": ("a {{cite|{{nested|x}}|y}} b", "a b"),
    "template over lines": ("{{Infobox\n| a = b\n| c = {{d}}\n}}\nText.", "Text."),
    "argument": ("a {{{1|}}} b", "a b"),
    "table": ('before\n{| class="x"\n|-\n| a || b\n|}\nafter', "before\n\nafter"),
    "table in table": ("{|\n| a\n{|\n| b\n|}\n|}\nafter", "after"),
    "template in table": ("{|\n| {{a|}}\n|}\nafter", "after"),
    "table in template": ("{{a|\n{|\n| x\n|}\n}}after", "after"),
    "reference": ('a<ref>no</ref> b<ref name="x" /> c<ref name=y>no\nno</ref>.', "a b c."),
    "math": ("x <math>\\frac{a}{{b}}</math> y", "x y"),
    "comment": ("a<!-- no --> b <!-- never closed", "a b"),
    "tags": ("a<br />b <span style='x'>c</span> <sup>2</sup>", "a\nb c 2"),
    "entities": ("a&nbsp;b &ndash; &lt;b&gt; &#233; &amp;amp;", "a b – <b> é &amp;"),
    "nowiki": ("a <nowiki>[[b]] ''c'' {{d}}</nowiki> e", "a [[b]] ''c'' {{d}} e"),
    "heading": ("Lead.\n==  Head ==\nText.\n===Sub===\nMore.", "Lead.\n\n== Head ==\n\nText.\n\n=== Sub ===\n\nMore."),
    "empty sections": ("Lead.\n== A ==\n=== B ===\n{{x}}\n== C ==\nText.\n== See ==\n", "Lead.\n\n== C ==\n\nText."),
    "lists": ("* one\n** two\n# three\n; four\n: five", "one\ntwo\nthree\nfour\nfive"),
    "switch": ("__NOTOC__a", "a"),
    "half-empty brackets": ("Rome ({{lang|x}}; {{y}}, born ''x'')", "Rome (born x)"),
    "empty brackets": ("Rome ({{lang|x}}) is; f() stays", "Rome is; f() stays"),
    "never closed": ("a {{b c [[d <ref>e", "a {{b c [[d e"),
    "never opened": ("a }} b ]] c |} </ref> d", "a }} b ]] c |} d"),
    "empty": ("", ""),
    "blank lines": ("a\n\n\n\nb\n\n", "a\n\nb"),
}


@pytest.mark.parametrize("name", RULES)
def test_rule(name):
    markup, text = RULES[name]
    assert render(markup, words_of_namespaces({6: {"Файл"}})) == text


def test_names_of_namespaces():
    assert words_of_namespaces({6: {"Файл"}, 1: {"Talk"}}) == {"файл", "file", "image", "category", "media"}


HOSTILE = [
    "{{",
    "}}",
    "[[",
    "]]",
    "[[a|",
    "{|\n",
    "|}\n",
    "<ref>",
    "</ref>",
    "<nowiki>",
    "<!--",
    "'",
    "[http://a",
    "<",
    "= ",
    "{{{",
]


@pytest.mark.parametrize("mark", HOSTILE)
def test_time_is_linear_in_the_length(mark):
    many = mark * (200_000 // len(mark))
    began = time.process_time()
    render(many)
    render(many + "x" * 200_000 + "]]" * 50_000 + "}}" * 50_000)
    assert time.process_time() - began < 2  # a quadratic rule takes minutes
