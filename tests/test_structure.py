"""The maps of the code do not lie: packages list their files, class names are unique, tests mirror the rooms."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("edgefl", "export", "device_runtime", "coordinator")
MAPPED = (*ROOMS, "benchmarks")
ENTRY = re.compile(r"^(\w+(?:\.py|/))(?: {2,}(\S.*))?$")
CORE = ROOT / "edgefl"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
MARK = "<!-- files -->\n"
DECISIONS = sorted(path.relative_to(ROOT) for path in (ROOT / "docs" / "decisions").glob("*.md"))


def packages(*rooms: str) -> list[Path]:
    found = [path.parent for room in rooms for path in (ROOT / room).rglob("__init__.py")]
    return sorted(found)


def name_of(package: Path) -> str:
    return str(package.relative_to(ROOT))


def modules(package: Path) -> set[str]:
    files = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    return files | {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}


def docstring_of(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""


def entries_of(package: Path) -> list[re.Match[str]]:
    return [found for line in docstring_of(package).splitlines() if (found := ENTRY.match(line))]


@pytest.mark.parametrize("package", packages(*MAPPED), ids=name_of)
def test_a_package_lists_its_files_in_its_docstring(package: Path) -> None:
    entries = entries_of(package)
    listed = [found[1] for found in entries]
    assert sorted(listed) == sorted(modules(package)), "list every module and sub-package once, a line each"
    assert all(found[2] for found in entries), "say in a few words what each is for"


def public_classes() -> dict[str, list[str]]:
    """Return the modules of the product that define each public class."""
    found = defaultdict(list)
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(name_of(path))
    return found


def test_no_public_class_name_is_used_twice() -> None:
    assert {name: places for name, places in public_classes().items() if len(places) > 1} == {}


def test_folders_of_tests_mirror_the_rooms() -> None:
    """A folder of tests is named after a package of `edgefl` or of the top level, or after what it tests as a whole."""
    wholes = {"android_demo", "documents", "fuzz", "golden", "coordinator/browser", "export/local_rules"}
    folders = [path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("__init__.py")]
    unknown = [
        str(folder)
        for folder in folders
        if str(folder) not in wholes | {"."}
        and not (ROOT / folder / "__init__.py").exists()
        and not (CORE / folder / "__init__.py").exists()
    ]
    assert unknown == []


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md", *map(str, DECISIONS)])
def test_every_path_in_a_document_for_contributors_exists(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = re.findall(r"`((?:edgefl|export|device_runtime|coordinator|tests|docs|examples)/[\w./]+)`", text)
    assert [path for path in named if not (ROOT / path).exists()] == []


def first_sentence(script: Path) -> str:
    """Return the first sentence of the comment at the head of a script."""
    head = script.read_text(encoding="utf-8").removeprefix("/*").partition("*/")[0]
    return re.split(r"(?<=\.) ", " ".join(line.strip(" *") for line in head.splitlines()).strip())[0]


def files_section() -> str:
    """Return a line about every file of the product, package by package."""
    lines = []
    for package in packages(*ROOMS):
        first = " ".join(docstring_of(package).partition("\n\n")[0].split())
        width = max((len(found[1]) for found in entries_of(package)), default=0)
        block = [f"    {found[1]:<{width}}  {found[2]}" for found in entries_of(package)]
        lines += [f"**{name_of(package)}/** {first}", "", *block, ""]
        scripts = sorted((package / "static").glob("*.js"))
        if scripts:
            lines += [f"**{name_of(package)}/static/** Scripts that browsers load as they are.", ""]
            lines += [*(f"    {path.name:<17}  {first_sentence(path)}" for path in scripts), ""]
    return "\n".join(lines).rstrip() + "\n"


def test_the_architecture_ends_with_a_line_about_every_file() -> None:
    _, mark, files = ARCHITECTURE.read_text(encoding="utf-8").partition(MARK)
    assert mark
    assert files.strip() == files_section().strip(), "run `python -m tests.test_structure`"


if __name__ == "__main__":
    head, _, _ = ARCHITECTURE.read_text(encoding="utf-8").partition(MARK)
    ARCHITECTURE.write_text(head + MARK + "\n" + files_section(), encoding="utf-8")
