"""Build the documentation site with MkDocs: `.venv/bin/python .ci/site.py [FOLDER]`. A broken link is an error.

Pages are gathered in build/site-source with the layout of the repository, so that links between README.md, its siblings
and docs/ work there as they do in a checkout. Files that pages link to come along. The API reference has one page for
each package whose names are promised (docs/stability.md).
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["PACKAGES", "build", "gather"]

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "edgefl.values",
    "edgefl.model_graph",
    "edgefl.masks",
    "edgefl.noise",
    "edgefl.wire",
    "edgefl.data",
    "edgefl.artifacts",
    "edgefl.local_rules",
    "edgefl.planning",
    "edgefl.strategies",
    "edgefl.federation",
    "edgefl.simulation",
    "edgefl.errors",
)
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def build(site: Path) -> int:
    """Build the site into a folder; return MkDocs' exit code."""
    gather(ROOT / "build" / "site-source")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site.resolve())]
    # Material for MkDocs announces its successor, Zensical, on every build; it reads the same mkdocs.yml.
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def gather(folder: Path) -> None:
    """Make the folder that MkDocs reads, again from nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        _copy(page, folder)
        for target in _LINK.findall(page.read_text(encoding="utf-8")):
            linked = (page.parent / target).resolve()
            if linked.is_file() and linked.suffix != ".md":
                _copy(linked, folder)
    (folder / "api").mkdir()
    names = "\n".join(f"- [`{name}`]({name}.md)" for name in PACKAGES)
    head = (
        "# API reference\n\nGenerated from the docstrings. [Stability](../docs/stability.md) says what is promised.\n"
    )
    (folder / "api" / "index.md").write_text(f"{head}\n{names}\n", encoding="utf-8")
    for name in PACKAGES:
        (folder / "api" / f"{name}.md").write_text(f"# {name}\n\n::: {name}\n", encoding="utf-8")


def _copy(file: Path, folder: Path) -> None:
    to = folder / file.relative_to(ROOT)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, to)


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "site")))
