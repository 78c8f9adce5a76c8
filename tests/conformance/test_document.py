"""docs/conformance.md has every row, and every section that a row names exists.

`python -m tests.conformance.test_document` writes the table anew.
"""

from itertools import groupby

import pytest

from edgefl.conformance.catalogue import ROWS
from edgefl.conformance.situation import Row
from tests.documents.commands import ROOT
from tests.documents.test_site import anchors_of

DOCUMENT = ROOT / "docs" / "conformance.md"
MARK = "<!-- rows -->\n"


def table() -> str:
    """Return the rows, theme by theme."""
    lines = []
    for theme, rows in groupby(ROWS, key=lambda row: row.theme):
        lines += ["", f"### {theme}", "", "| row | the client must | see |", "| --- | --- | --- |"]
        for row in rows:
            asks = f"{row.asks} (optional)" if row.is_optional else row.asks
            page, _, anchor = row.section.partition("#")
            lines.append(f"| `{row.name}` | {asks} | [{page.removesuffix('.md')}]({page}#{anchor}) |")
    return "\n".join(lines).lstrip("\n") + "\n"


def test_the_document_has_every_row() -> None:
    _, mark, rest = DOCUMENT.read_text(encoding="utf-8").partition(MARK)
    assert mark
    assert rest.strip() == table().strip(), "run `python -m tests.conformance.test_document`"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_section_of_a_row_exists(row: Row) -> None:
    page, _, anchor = row.section.partition("#")
    assert anchor in anchors_of(ROOT / "docs" / page)


def test_rows_have_different_names() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


if __name__ == "__main__":
    head, _, _ = DOCUMENT.read_text(encoding="utf-8").partition(MARK)
    DOCUMENT.write_text(head + MARK + "\n" + table(), encoding="utf-8")
