"""The agent's files on disk, and how they survive a crash at any moment.

    identity.json        who this device is to which coordinator; readable by its user alone
    sample.json          what a sample of the federation is, as its coordinator said last
    capabilities.json    what this software can run, as the coordinator was told last
    usage.json           today's joules and bytes
    task/plan.json       the open task: the plan, and when it arrived
    task/result.safetensors, task/refusal.json
                         its outcome, until the coordinator has acknowledged it
    checkpoints/         the training state
    personal/            the device's own model: weights, mask, model graph, inference graph
    cache/               downloaded artifacts

Folders and files are for their user alone: 0700 and 0600 from the moment that they exist, whatever the umask. A home
from before is tightened at the start; one in which another user owns something is not used.

Every file is written atomically. Files are written in the order of the work, so that whatever is there after a crash
says what to do next: a result is sent, a plan without a result resumes from its checkpoint.
"""

import contextlib
import errno
import json
import os
import shutil
import stat
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from edgefl.artifacts.artifact_store import PRIVATE, make_folder, write_atomically
from edgefl.errors import EdgeFLError
from edgefl.pins import check_pins
from edgefl.values import Capabilities, ClientPlan, Refusal, SampleSpec, dumps, loads

_Parsed = TypeVar("_Parsed")
_FOLDERS = ("task", "checkpoints", "personal", "cache")
_FILES = ("identity.json", "sample.json", "capabilities.json", "usage.json", "profile.json", "lock")

__all__ = ["AgentHome", "Identity", "OpenTask", "Usage"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this device is."""

    coordinator: str
    enrolment_id: str
    device_id: str | None = None
    token: str | None = field(default=None, repr=False)
    federation: str | None = None
    """What the pairing code called it."""
    pins: tuple[str, ...] = ()
    """The keys that the coordinator's certificate may have; none means the usual verification."""
    code: str | None = None
    """Digest of the last pairing URI with pins: given again, it does not bring back pins that have changed since."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Today's energy and traffic."""

    day: str = ""
    joules: float = 0.0
    traffic_bytes: int = 0


@dataclass(frozen=True, slots=True)
class OpenTask:
    """A plan, and when it arrived: by a clock that runs while the device sleeps, and by the wall clock."""

    plan: ClientPlan
    boot: str
    """The boot that `uptime` counts from."""
    uptime: float
    wall: float


class AgentHome:
    """An agent's folder, for one agent at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            make_folder(folder, mode=PRIVATE)
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            _tighten(folder)
        except OSError as error:
            raise EdgeFLError(
                f"{folder} cannot be used as a device's home: {error.strerror}", fix="Give another --home."
            ) from None

    @property
    def checkpoints(self) -> Path:
        """The folder of the trainer's checkpoints."""
        return self.folder / "checkpoints"

    @property
    def cache(self) -> Path:
        """The folder of downloaded artifacts."""
        return self.folder / "cache"

    @property
    def personal(self) -> Path:
        """The folder of the device's own model."""
        return self.folder / "personal"

    def lock(self) -> None:
        """Lock the folder for this process until it ends. The system releases it even after a kill."""
        import fcntl

        try:
            descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
        except OSError as error:
            raise EdgeFLError(
                f"{self.folder / 'lock'} cannot be opened: {error.strerror}", fix="Remove it, or give another --home."
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise EdgeFLError(
                f"another agent is running in {self.folder}", fix="Stop it, or give this one another --home."
            ) from None
        for place in (self.folder, *(self.folder / name for name in _FOLDERS)):
            for unfinished in place.glob(".writing-*"):  # of an agent that was killed
                with contextlib.suppress(OSError):
                    unfinished.unlink()

    def identity(self) -> Identity | None:
        """Return who this device is, if it has ever asked to join."""
        return _parsed(Identity, self.folder / "identity.json", pins=lambda said: check_pins(map(str, said)))

    def save_identity(self, identity: Identity) -> None:
        """Save who this device is."""
        path = self.folder / "identity.json"
        write_atomically(path, json.dumps(asdict(identity), indent=2).encode(), mode=PRIVATE)

    def forget_token(self) -> None:
        """Remove the token that no longer works. The next enrolment is a new one."""
        identity = self.identity()
        if identity is not None:
            self.save_identity(replace(identity, enrolment_id=uuid.uuid4().hex, device_id=None, token=None))

    def sample(self) -> SampleSpec | None:
        """Return what a sample of the federation is, as it was said last."""
        return self._document(SampleSpec, "sample.json")

    def save_sample(self, sample: SampleSpec | None) -> None:
        """Keep what a sample is; None forgets it."""
        self._save_document(sample, "sample.json")

    def told_capabilities(self) -> Capabilities | None:
        """Return what the coordinator was told last about this software."""
        return self._document(Capabilities, "capabilities.json")

    def save_told_capabilities(self, capabilities: Capabilities | None) -> None:
        """Keep what the coordinator was told; None forgets it."""
        self._save_document(capabilities, "capabilities.json")

    def usage(self) -> Usage:
        """Return the usage of the last day that had any."""
        return _parsed(Usage, self.folder / "usage.json") or Usage()

    def save_usage(self, usage: Usage) -> None:
        """Save the usage."""
        write_atomically(self.folder / "usage.json", json.dumps(asdict(usage)).encode(), mode=PRIVATE)

    def open_task(self) -> OpenTask | None:
        """Return the open task, if there is one."""
        # A file that exists but cannot be read must not be mistaken for a missing one.
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError, EdgeFLError):
            said = json.loads((self._task / "plan.json").read_bytes())
            return OpenTask(loads(ClientPlan, said.pop("plan").encode()), **said)
        return None

    def begin_task(self, task: OpenTask) -> None:
        """Open a task, and remove what is left of the previous one, which has ended."""
        self.end_task()
        said = {"plan": dumps(task.plan), "boot": task.boot, "uptime": task.uptime, "wall": task.wall}
        write_atomically(self._task / "plan.json", json.dumps(said).encode(), mode=PRIVATE)

    def finish_task(self, body: bytes) -> None:
        """Keep a result until it is acknowledged."""
        write_atomically(self._task / "result.safetensors", body, mode=PRIVATE)

    def refuse_task(self, refusal: Refusal) -> None:
        """Keep a refusal until it is acknowledged."""
        write_atomically(self._task / "refusal.json", dumps(refusal).encode(), mode=PRIVATE)

    def result(self) -> bytes | None:
        """Return the result that is waiting to be acknowledged."""
        with contextlib.suppress(FileNotFoundError):
            return (self._task / "result.safetensors").read_bytes()
        return None

    def refusal(self) -> Refusal | None:
        """Return the refusal that is waiting to be acknowledged."""
        with contextlib.suppress(FileNotFoundError, EdgeFLError):
            return loads(Refusal, (self._task / "refusal.json").read_bytes())
        return None

    def end_task(self) -> None:
        """Close the open task. The plan is removed first: what is left without it means nothing."""
        (self._task / "plan.json").unlink(missing_ok=True)
        shutil.rmtree(self._task, ignore_errors=True)
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    @property
    def _task(self) -> Path:
        return self.folder / "task"

    def _document(self, kind: type[_Parsed], name: str) -> _Parsed | None:
        with contextlib.suppress(OSError, EdgeFLError):
            return loads(kind, (self.folder / name).read_bytes(), tolerant=True)
        return None

    def _save_document(self, value: object, name: str) -> None:
        if value is None:
            (self.folder / name).unlink(missing_ok=True)
            return
        with contextlib.suppress(OSError):  # a full disk: it is asked for, or told, again
            write_atomically(self.folder / name, (dumps(value, indent=2) + "\n").encode(), mode=PRIVATE)


def _tighten(folder: Path) -> None:
    """Take from others what an older version, or another program, left open to them in a home.

    The folder comes first: once others cannot enter it, nothing in it can be exchanged while it is checked. Only what
    an agent writes is touched, since somebody may have made a folder of their own the home.
    """
    _close_to_others(folder, folder.stat())
    for name in (*_FILES, *_FOLDERS):
        place = folder / name
        if place.is_symlink() or place.exists():
            for inner in (place, *(place.rglob("*") if place.is_dir() and not place.is_symlink() else ())):
                _close_to_others(inner, inner.lstat())


def _close_to_others(place: Path, found: os.stat_result) -> None:
    if found.st_uid != _user():
        raise EdgeFLError(
            f"{place} belongs to another user", fix="Give another --home, or make it yours with `chown -R`."
        )
    if not stat.S_ISLNK(found.st_mode) and found.st_mode & 0o077:  # what the owner's link leads to is left alone
        place.chmod(found.st_mode & 0o700)


def _user() -> int:
    return os.geteuid()


def _parsed(kind: type[_Parsed], path: Path, **readers: Callable[[Any], Any]) -> _Parsed | None:
    """Read a small value; return None if its fields do not have the right types. Some fields have a reader."""
    with contextlib.suppress(FileNotFoundError, ValueError, TypeError, EdgeFLError):
        said = json.loads(path.read_bytes())
        read = {name: readers[name](said.pop(name)) for name in readers if name in said}
        value = kind(**said, **read)
        kinds = get_type_hints(kind)
        if all(isinstance(said[name], kinds[name] if kinds[name] is not float else (int, float)) for name in said):
            return value
    return None
