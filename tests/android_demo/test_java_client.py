"""The Java client as a whole: its own tests, and what its build promises."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.android_demo.conftest import PROJECT

POM = "{http://maven.apache.org/POM/4.0.0}"


def test_it_builds_and_passes_its_own_tests(maven_log: Path) -> None:
    """Golden files, the rules of parsers, and the API of Android 26 among them."""
    assert maven_log.read_text(encoding="utf-8") == ""


def test_every_plugin_and_library_has_one_exact_version() -> None:
    parent = ET.parse(PROJECT / "pom.xml").getroot()
    for kind in ("plugin", "dependency"):
        versions = [found.findtext(f"{POM}version") or "" for found in parent.iter(f"{POM}{kind}")]
        assert versions
        assert all(re.fullmatch(r"[\d.]+|\$\{[\w.]+\}", version) for version in versions)
    assert not list(parent.iter(f"{POM}repository"))


def test_the_core_knows_no_android_and_no_other_library() -> None:
    """It is plain Java, so that any application can use it."""
    allowed = re.compile(r"import (static )?(java|javax\.net\.ssl|org\.edgefl|ai\.onnxruntime)\.")
    sources = list((PROJECT / "core" / "src" / "main").rglob("*.java"))
    assert len(sources) > 30
    for path in sources:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("import ")]
        assert [line for line in lines if not allowed.match(line)] == [], path.name
