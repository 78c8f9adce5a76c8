"""The golden files are up to date, small and described."""

import pytest

from tests.golden.encoding import FOLDER
from tests.golden.make import FILES, content


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_what_the_script_writes(name: str) -> None:
    assert (FOLDER / name).read_bytes() == content(name), "run `python -m tests.golden.make`"


def test_no_file_is_without_a_script_or_a_description() -> None:
    files = {path.name for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".py"} - {"README.md"}
    assert files == set(FILES)
    description = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in sorted(files) if f"| `{name}` |" not in description] == []


def test_the_files_are_small() -> None:
    assert sum((FOLDER / name).stat().st_size for name in FILES) < 2**20
