"""Keeps the output of torch and ExecuTorch off the user's terminal, and their errors short.

Importing and running their exporters prints deprecation warnings and notes about missing optional parts to stderr. None
of it concerns the user who exports a model: whatever does is raised as an `ExportError`.
"""

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator

__all__ = ["first_line", "quiet"]


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message."""
    text = str(error).strip()
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings, logging and whatever native code writes to stderr."""
    before = logging.root.manager.disable
    with warnings.catch_warnings(), _no_stderr():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)


@contextlib.contextmanager
def _no_stderr() -> Iterator[None]:
    """Point file descriptor 2 at /dev/null: the runtime logs from C++, below Python's `sys.stderr`."""
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # there is no stderr, as in some services, so nothing to silence
        yield
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
