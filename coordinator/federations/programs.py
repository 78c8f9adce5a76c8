"""The programs of a federation, for those who compile them: what is wanted, leases, and what is delivered.

Routes call this. It raises `CoordinatorError` for what is not possible. The coordinator compiles nothing itself:
whoever has torch takes what is wanted, and without anybody the devices go on with the programs that there are.
"""

from dataclasses import dataclass
from pathlib import Path

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.federations.lifecycle import existing
from coordinator.rounds.context import Context
from coordinator.storage.records import Actor, AuditEvent, ProgramRecord, ProgramState
from edgefl.artifacts.program_check import check_program_file, check_programs
from edgefl.errors import SchemaError
from edgefl.planning import Ladder
from edgefl.values import Program, ProgramSpec, dumps, loads

__all__ = [
    "LEASE_SECONDS",
    "Leased",
    "deliver",
    "fail",
    "give_back",
    "keep_file",
    "renew",
    "rung_of",
    "take",
    "want_again",
]

LEASE_SECONDS = 60.0
"""How long a worker may be silent before others take over."""
_HEAD = 64
_LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class Leased:
    """A program that a worker is to compile."""

    key: str
    spec: ProgramSpec
    rung: str


def rung_of(ladder: Ladder, text: str) -> str:
    """Return the rung of a stored specification for people."""
    return ladder.rung_of(loads(ProgramSpec, text))


def take(context: Context, name: str, worker: str) -> Leased | None:
    """Give a worker the next wanted program of a federation; None if nothing is wanted."""
    federation = existing(context, name)
    found = context.store.programs.take(name, worker, now=context.now(), seconds=LEASE_SECONDS)
    if found is None:
        return None
    ladder = context.programs.of(federation).ladder
    return Leased(found.key, loads(ProgramSpec, found.spec), rung_of(ladder, found.spec))


def renew(context: Context, name: str, key: str, worker: str) -> None:
    """Let a worker go on compiling."""
    if not context.store.programs.renew(name, key, worker, now=context.now(), seconds=LEASE_SECONDS):
        raise _lost(key, worker)


def give_back(context: Context, name: str, key: str, worker: str) -> None:
    """Let others compile a program. Nothing happens if the worker does not hold it any more."""
    context.store.programs.give_back(name, key, worker, at=context.now())


def fail(context: Context, name: str, key: str, worker: str, reason: str) -> ProgramState:
    """Note that a worker could not compile a program."""
    state = context.store.programs.fail(name, key, worker, reason[:_LONGEST_REASON], at=context.now())
    if state is None:
        raise _lost(key, worker)
    return state


def want_again(context: Context, name: str, key: str | None, *, by: Actor) -> int:
    """Let a program be compiled again, or all that failed; return how many there are."""
    existing(context, name)
    count = context.store.programs.want_again(name, key, at=context.now(), by=by)
    context.programs.forget(name)
    return count


def keep_file(context: Context, body: bytes | Path, *, by: Actor) -> str:
    """Store the file of a program, and return its digest. It is used once its document is delivered."""
    data = body.read_bytes() if isinstance(body, Path) else body
    check_program_file(data[:_HEAD])
    digest = context.blobs.put(data)
    event = AuditEvent(at=context.now(), by=by, action="program.file", target=digest, detail={"bytes": len(data)})
    context.store.audit.add(event)
    return digest


def deliver(context: Context, name: str, key: str, program: Program, worker: str | None, *, by: Actor) -> bool:
    """Let the devices of a federation use a program; return False if there is one already, which stays.

    It is checked as far as it can be without running it: that its file is here, that it was compiled for this
    federation's model, and that it is called as devices call it.
    """
    federation = existing(context, name)
    if program.spec.key != key:
        raise SchemaError(f"the program has the key {program.spec.key}", fix="Send it to the address of its own key.")
    check_programs([program], context.repository.bundle(federation))
    _check_file(context, program)
    text, now = dumps(program), context.now()
    context.blobs.put(text.encode())
    made = ProgramRecord(
        federation=name,
        key=key,
        spec=dumps(program.spec),
        state=ProgramState.READY,
        wanted_at=now,
        changed_at=now,
        worker=worker,
        program=text,
    )
    new = context.store.programs.deliver(made, by=by)
    context.programs.forget(name)
    return new


def _check_file(context: Context, program: Program) -> None:
    size = context.blobs.size(program.pte)
    if size is None:
        raise CoordinatorError(
            ErrorReason.NOT_FOUND,
            f"there is no file {program.pte} of a program",
            fix="Send it to /v1/programs first.",
        )
    if size != program.size:
        raise SchemaError(f"the file of the program has {size} bytes, not {program.size}", fix="Send the right size.")
    check_program_file(b"".join(context.blobs.read(program.pte, 0, min(size, _HEAD))))


def _lost(key: str, worker: str) -> CoordinatorError:
    return CoordinatorError(
        ErrorReason.CONFLICT,
        f"the worker {worker!r} does not compile {key[:20]}",
        fix="Its lease has ended, or the program is there: ask for the next one.",
    )
