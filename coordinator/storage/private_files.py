"""Keeps what the coordinator stores away from the other users of its machine, whatever the umask it was started with.

New files are private because the process has its own umask. What an earlier version, a copy or a person left open is
tightened at the start. Links are not followed: they may lead to what is not ours.
"""

import contextlib
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from edgefl.errors import EdgeFLError

__all__ = ["check_own_folder", "create_private", "private_umask", "tighten", "tighten_tree"]

_LOG = logging.getLogger(__name__)
_OTHERS = 0o077


@contextlib.contextmanager
def private_umask() -> Iterator[None]:
    """Let this process create files that only its user can read."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def create_private(path: Path) -> None:
    """Create an empty file that only its user can read, unless the file exists."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def check_own_folder(folder: Path) -> None:
    """Refuse a folder that all users share, such as /tmp: it cannot be closed to them."""
    if folder.stat().st_mode & stat.S_ISVTX or folder.resolve() == Path("/"):
        raise EdgeFLError(
            f"{folder} is shared by all users of this machine", fix="Give the coordinator a folder of its own."
        )


def tighten(*paths: Path) -> int:
    """Close files and folders to other users; return how many were open. Those that do not exist are skipped."""
    return sum(_tightened(path, path.stat()) for path in paths if path.exists() and not path.is_symlink())


def tighten_tree(folder: Path) -> int:
    """Close a folder and everything below it to other users; return how many files and folders were open."""
    count = tighten(folder)
    pending = [folder] if folder.is_dir() else []
    while pending:
        with contextlib.suppress(FileNotFoundError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # another process may be at work here
                    if entry.is_symlink():
                        continue
                    count += _tightened(Path(entry.path), entry.stat(follow_symlinks=False))
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(Path(entry.path))
    return count


def _tightened(path: Path, known: os.stat_result) -> bool:
    allowed = 0o700 if stat.S_ISDIR(known.st_mode) else 0o600
    mode = stat.S_IMODE(known.st_mode)
    if not mode & ~allowed:
        return False
    try:
        path.chmod(mode & allowed)
    except PermissionError:
        _LOG.warning("%s is open to other users and belongs to somebody else: close it with chmod go=", path)
        return False
    return True
