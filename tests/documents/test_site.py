"""The documents' links lead somewhere, in a checkout and on the site; the site asks no other host for anything."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.documents.commands import ROOT, documents

LINK = re.compile(r"(?<!`)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]* (?:src|href)=\"?https?:")
"""What a browser fetches by itself from another host."""


def text_without_code(path: Path) -> str:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^    .*$", "", text, flags=re.MULTILINE)


def anchors_of(path: Path) -> set[str]:
    """The names of a document's headings, as GitHub and MkDocs make them."""
    found: Counter[str] = Counter()
    anchors = set()
    for heading in re.findall(r"^#+ (.*)$", text_without_code(path), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        anchors.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return anchors


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for link in LINK.finditer(text_without_code(document)):
        target, _, anchor = link["target"].partition("#")
        if ":" in target:
            continue  # another host, or mail
        file = document.parent / target if target else document
        assert file.exists(), link[0]
        if anchor:
            assert anchor in anchors_of(file), link[0]


def test_every_document_is_in_the_index() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "index.md" or f"({path.name})" in text, path.name


def test_every_decision_is_listed_and_has_its_three_parts() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    records = sorted(folder.glob("[0-9]*.md"))
    for number, path in enumerate(records, 1):
        text = path.read_text(encoding="utf-8")
        assert path.name.startswith(f"{number:04d}-")
        assert f"]({path.name})" in listed
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"], path.name


@pytest.mark.slow
def test_the_site_is_built_without_a_broken_link_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / ".ci" / "site.py"), str(tmp_path / "site")]
    done = subprocess.run(script, capture_output=True, text=True, env=os.environ | {"PYTHONWARNINGS": "ignore"})
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert {"index.html", "docs/wire.html", "api/edgefl.masks.html"} <= {
        page.relative_to(tmp_path / "site").as_posix() for page in pages
    }
    assert "leading_channels" in (tmp_path / "site" / "api" / "edgefl.masks.html").read_text(encoding="utf-8")
    for page in pages:
        assert not LOADED.search(page.read_text(encoding="utf-8")), page.name
