"""Small MediaWiki dumps for the tests."""

from xml.sax.saxutils import escape

HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="bg">
  <siteinfo><sitename>Wikipedia</sitename><namespaces>
    <namespace key="0" case="first-letter" />
    <namespace key="1" case="first-letter">Talk</namespace>
    <namespace key="6" case="first-letter">Файл</namespace>
    <namespace key="14" case="first-letter">Категория</namespace>
  </namespaces></siteinfo>
"""


def page(title: str, text: str, ns: int | None = 0, redirect: bool = False) -> str:
    return (
        f"  <page>\n    <title>{escape(title)}</title>\n"
        + (f"    <ns>{ns}</ns>\n" if ns is not None else "")
        + ('    <redirect title="X" />\n' if redirect else "")
        + "    <id>1</id>\n    <revision><id>2</id><contributor><username>text</username></contributor>\n"
        f'      <text xml:space="preserve">{escape(text)}</text>\n    </revision>\n  </page>\n'
    )


def dump(*pages: str) -> str:
    return f"{HEADER}{''.join(pages)}</mediawiki>\n"
