"""Backups of a state folder, taken while the coordinator runs. A backup has the layout of a state folder.

A body is stored before the database names it, and dropped after the database has forgotten it. So the order matters:

    1. the bodies, which is most of the work; those that an earlier backup in the same place has are not copied again
    2. a snapshot of the database, in one read transaction
    3. the bodies that came between the two and that the snapshot needs
    4. if one of those is already gone, a new snapshot: steps 2 and 3 again, which take moments

Only then does the new database replace that of an earlier backup. Whatever the coordinator had acknowledged before the
snapshot is in it.
"""

import contextlib
import hashlib
import os
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from coordinator.storage.folder_blobs import FolderBlobs
from coordinator.storage.private_files import private_umask
from coordinator.storage.tls_keys import FOLDER
from edgefl.artifacts.artifact_store import flush
from edgefl.errors import EdgeFLError

__all__ = ["Backup", "back_up", "check_backup"]

DATABASE, BLOBS = "coordinator.sqlite", "blobs"
_SECRETS = ("admin-token", "viewer-token", "join-key")
_TRIES = 20
# What a coordinator needs to go on: not the models of old rounds, nor updates that were aggregated.
_NEEDED = """
    SELECT bundle FROM federations
    UNION SELECT digest FROM artifacts
    UNION SELECT mask_body FROM devices
    UNION SELECT tasks."update" FROM tasks JOIN rounds
        ON rounds.federation = tasks.federation AND rounds.number = tasks.counted_in
        JOIN federations ON federations.id = tasks.federation
        WHERE tasks.body_kept AND rounds.state <> 'done' AND federations.state NOT IN ('finished', 'aborted')
    UNION SELECT coalesce(next_model, model) FROM rounds AS one
        WHERE number = (SELECT max(number) FROM rounds WHERE federation = one.federation)
    UNION SELECT CASE WHEN state = 'done' THEN next_state_arrays ELSE state_arrays END FROM rounds AS one
        WHERE number = (SELECT max(number) FROM rounds WHERE federation = one.federation)
"""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup contains."""

    bodies: int
    """Bodies that the coordinator needs to go on."""
    copied_bytes: int
    """Bytes of bodies that were copied now."""
    snapshots: int = 1
    """How often the database was copied until it fitted the bodies."""


def back_up(state: Path, target: Path) -> Backup:
    """Copy a state folder, whether or not its coordinator runs, to a folder that is new or an earlier backup."""
    _check_places(state, target)
    with private_umask():
        for folder in (target, target / BLOBS / "content", target / BLOBS / "spool"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        copied = _copy_bodies(state / BLOBS, target / BLOBS)
        snapshot, needed, snapshots = _fitting_snapshot(state, target)
        _drop_old_bodies(needed, state / BLOBS, target / BLOBS)
        _replace_database(snapshot, target / DATABASE)
        _copy_secrets(state, target)
        flush(target)
    return Backup(len(needed), copied, snapshots)


def _fitting_snapshot(state: Path, target: Path) -> tuple[Path, set[str], int]:
    """Copy the database, and the bodies that it needs and that are not there yet, until both fit together."""
    snapshot = target / f".{DATABASE}-new"
    with contextlib.closing(FolderBlobs(target / BLOBS)) as copies:
        for attempt in range(1, _TRIES + 1):
            snapshot.unlink(missing_ok=True)
            _copy_database(state / DATABASE, snapshot)
            needed = _needed(snapshot)
            if _complete(needed, state / BLOBS, copies):
                return snapshot, needed, attempt
    raise EdgeFLError(
        f"a body that the coordinator needs cannot be copied to {target}: it is missing, damaged, or dropped at once",
        fix="Look at the coordinator's log; if its rounds are very short, pause its federations for a moment.",
    )


def check_backup(target: Path) -> Backup:
    """Read everything in a backup that a coordinator needs. Raise `EdgeFLError` if something is missing or damaged."""
    if not (target / DATABASE).exists():
        raise EdgeFLError(f"{target} is not a backup: it has no file {DATABASE}", fix="Name the folder of a backup.")
    for path in (target / DATABASE, target / BLOBS / "small.sqlite"):
        _check_integrity(path)
    needed, size = _needed(target / DATABASE), 0
    with contextlib.closing(FolderBlobs(target / BLOBS)) as copies:
        for digest in sorted(needed):
            if copies.size(digest) is None:
                raise EdgeFLError(f"{target} lacks the body {digest}", fix="Take another backup.")
            with copies.open(digest) as body:
                size += len(body)
                if "sha256:" + hashlib.sha256(body).hexdigest() != digest:
                    raise EdgeFLError(f"the body {digest} in {target} is damaged", fix="Take another backup.")
    return Backup(len(needed), size)


def _check_places(state: Path, target: Path) -> None:
    if not (state / DATABASE).exists():
        raise EdgeFLError(
            f"{state} has no file {DATABASE}",
            fix="Name the state folder with --state; back up PostgreSQL and S3 with their own tools.",
        )
    inside = target.resolve()
    if inside == state.resolve() or state.resolve() in inside.parents:
        raise EdgeFLError(f"{target} is in the state folder itself", fix="Choose a folder elsewhere, on another disk.")
    known = (target / BLOBS).is_dir() or not target.exists() or not any(target.iterdir())
    if not known:
        raise EdgeFLError(f"{target} is neither empty nor a backup", fix="Choose another folder.")


def _copy_bodies(source: Path, target: Path) -> int:
    """Copy the bodies that the target does not have."""
    copied = 0
    for path in (source / "content").iterdir():
        copy = target / "content" / path.name
        with contextlib.suppress(FileNotFoundError):  # dropped meanwhile
            if not copy.exists() or copy.stat().st_size != path.stat().st_size:
                copied += _copy_file(path, copy, target / "spool" / path.name)
    flush(target / "content")
    part = target / ".small.sqlite-new"
    part.unlink(missing_ok=True)
    _copy_database(source / "small.sqlite", part)
    copied += part.stat().st_size
    _replace_database(part, target / "small.sqlite")
    return copied


def _copy_file(path: Path, copy: Path, part: Path) -> int:
    """Copy a file, which is complete or missing after a crash."""
    shutil.copyfile(path, part)
    flush(part)
    part.replace(copy)
    return copy.stat().st_size


def _copy_database(source: Path, target: Path) -> None:
    """Copy an SQLite file as it is at one moment, while others read and write it."""
    with contextlib.closing(sqlite3.connect(source, timeout=60)) as reader:
        reader.execute("PRAGMA query_only = ON")
        with contextlib.closing(sqlite3.connect(target, timeout=60)) as writer:
            reader.backup(writer)


def _replace_database(new: Path, old: Path) -> None:
    """Put a database in the place of an older one, whose log must not be applied to it."""
    for ending in ("-wal", "-shm"):
        old.with_name(old.name + ending).unlink(missing_ok=True)
    flush(new)
    new.replace(old)


def _needed(database: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(database)) as reader:
        return {row[0] for row in reader.execute(_NEEDED) if row[0] is not None}


def _complete(needed: set[str], source: Path, copies: FolderBlobs) -> bool:
    """Copy what is missing; return False if something is gone."""
    for digest in sorted(needed):
        if copies.size(digest) is None:
            body = _body(source, digest)
            if body is None or copies.put(body) != digest:
                return False
    return True


def _body(source: Path, digest: str) -> bytes | None:
    """Return a body of a blob folder, without opening the folder as a worker does."""
    digits = digest.removeprefix("sha256:")
    with contextlib.closing(sqlite3.connect(source / "small.sqlite", timeout=60)) as reader:
        row = reader.execute("SELECT data FROM bodies WHERE name = ?", (digits,)).fetchone()
    with contextlib.suppress(FileNotFoundError):
        return bytes(row[0]) if row is not None else (source / "content" / digits).read_bytes()
    return None


def _drop_old_bodies(needed: set[str], source: Path, target: Path) -> None:
    """Drop the bodies that the coordinator has dropped, and that the snapshot does not need either."""
    digits = {digest.removeprefix("sha256:") for digest in needed}
    for path in (target / "content").iterdir():
        if path.name not in digits and not (source / "content" / path.name).exists():
            path.unlink()


def _copy_secrets(state: Path, target: Path) -> None:
    """Copy the tokens, and the keys of TLS: devices know a coordinator by these."""
    names = [*_SECRETS, *(f"{FOLDER}/{path.name}" for path in sorted((state / FOLDER).glob("key-*.pem")))]
    if (state / FOLDER).is_dir():
        (target / FOLDER).mkdir(mode=0o700, exist_ok=True)
    for name in (*names, f"{FOLDER}/current", f"{FOLDER}/served"):  # the keys first: `current` names one of them
        with contextlib.suppress(FileNotFoundError):
            text = (state / name).read_bytes()
            (target / name).unlink(missing_ok=True)
            with os.fdopen(os.open(target / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text)


def _check_integrity(path: Path) -> None:
    try:
        with contextlib.closing(sqlite3.connect(path)) as reader:
            said = reader.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as error:
        said = str(error)
    if said != "ok":
        raise EdgeFLError(f"{path} is damaged: {said}", fix="Take another backup.")
