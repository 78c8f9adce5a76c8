"""Where code that users name as `package.module:name` is looked for: their models, their strategies."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["current_folder_importable"]


@contextmanager
def current_folder_importable() -> Iterator[None]:
    """Look into the current folder last: a console script, unlike `python -m`, does not."""
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        yield
    finally:
        # What was imported may have changed the path itself: take away the last entry that can be ours, if any is left.
        if here in sys.path:
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(here)]
