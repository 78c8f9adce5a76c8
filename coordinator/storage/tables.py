"""The tables of the coordinator's database, the same on SQLite and PostgreSQL.

A column has the name of its record's field in `coordinator.storage.records`. `migrations` creates these tables; a
change here needs a step there, and a test compares the two.
"""

from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    Enum,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    text,
    true,
)
from sqlalchemy.types import TypeEngine

from coordinator.storage.records import FederationState, OperatorRole, ProgramState, RoundState, TaskState

__all__ = [
    "Number",
    "Word",
    "artifacts",
    "audit",
    "devices",
    "federations",
    "keys",
    "leases",
    "metadata",
    "programs",
    "rounds",
    "tasks",
    "tokens",
]


class Word(TypeDecorator[str]):
    """An id or a digest, compared and sorted by its bytes, whatever the locale of the server.

    Ids come from URLs, so they may contain anything. Characters that no database can hold are replaced.
    """

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        """Return a type that PostgreSQL does not sort by its locale."""
        return String(collation="C") if dialect.name == "postgresql" else String()

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace what the drivers refuse: NUL, and incomplete characters."""
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return value.replace("\0", "\ufffd").encode(errors="replace").decode()


class Number(TypeDecorator[int]):
    """The number of a round. A number that no round can have becomes -1, which none has."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> int | None:
        """Return a number that the drivers can hold."""
        return value if value is None or 0 <= value < 2**31 else -1


def _state(kind: type[StrEnum]) -> Enum:
    return Enum(kind, native_enum=False, length=16, values_callable=lambda states: [state.value for state in states])


metadata = MetaData()

federations = Table(
    "federations",
    metadata,
    Column("id", Word, primary_key=True),
    Column("settings", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("bundle", Word, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("state", _state(FederationState), nullable=False),
    Column("reason", Text),
    Column("changed_at", Double),
    Column("deadline", Double),
)

rounds = Table(
    "rounds",
    metadata,
    Column("federation", Word, ForeignKey("federations.id"), primary_key=True),
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("model", Word, nullable=False),
    Column("state_arrays", Word),
    Column("state", _state(RoundState), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("deadline_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("closed_because", Text),
    Column("done_at", Double),
    Column("next_model", Word),
    Column("next_state_arrays", Word),
    Column("report", Text),
    Column("plan", Text),
    Column("model_kept", Boolean, nullable=False, server_default=true()),
    # Whatever workers do, a federation has at most one open round.
    Index(
        "one_open_round",
        "federation",
        unique=True,
        sqlite_where=text("state = 'open'"),
        postgresql_where=text("state = 'open'"),
    ),
)

keys = Table(
    "keys",
    metadata,
    Column("id", Word, primary_key=True),
    Column("federation", Word, ForeignKey("federations.id"), nullable=False, index=True),
    Column("hash", Word, nullable=False, unique=True),
    Column("label", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("most_uses", BigInteger),
    Column("uses", BigInteger, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
)

devices = Table(
    "devices",
    metadata,
    Column("id", Word, primary_key=True),
    Column("federation", Word, ForeignKey("federations.id"), nullable=False),
    Column("enrolment_id", Word, nullable=False),
    Column("token_hash", Word, nullable=False, unique=True),
    Column("key", Word, ForeignKey("keys.id"), nullable=False),
    Column("profile", Text, nullable=False),
    Column("software", Text, nullable=False),
    Column("enrolled_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),  # not indexed: it changes with every poll
    Column("revoked_at", Double),
    Column("done", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("samples", BigInteger),
    Column("mask_body", Word),
    Column("correction", Text),
    Column("last_task", Word),
    Column("last_result", Word),
    Column("left_out", Text),
    Column("capabilities", Text),
    Column("engine", Text),
    Index("devices_of_federation", "federation", "id"),
    Index("one_device_an_enrolment", "federation", "enrolment_id", unique=True),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", Word, primary_key=True),
    Column("federation", Word, nullable=False),
    Column("round", Number, nullable=False),
    Column("device", Word, ForeignKey("devices.id"), nullable=False),
    Column("plan", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("state", _state(TaskState), nullable=False),
    Column("handed_at", Double),
    Column("ended_at", Double),
    Column("counted_in", Number),
    Column("update", Word),
    Column("result", Text),
    Column("next_mask", Word),
    Column("refusal", Text),
    Column("kept_fraction", Double),
    Column("trained_fraction", Double),
    Column("rung", Text),
    # Not in the record: whether the body of `update` is still in the blob store.
    Column("body_kept", Boolean, nullable=False, default=False),
    ForeignKeyConstraint(["federation", "round"], ["rounds.federation", "rounds.number"]),
    Index("tasks_of_round", "federation", "round", "state"),
    Index("tasks_in_state", "federation", "state"),
    Index("tasks_of_device", "device", "state"),
    Index("tasks_counted", "federation", "counted_in"),
    Index(
        "updates_of_round",
        "federation",
        "counted_in",
        sqlite_where=text("body_kept = 1"),
        postgresql_where=text("body_kept"),
    ),
    Index("kept_updates", "update", sqlite_where=text("body_kept = 1"), postgresql_where=text("body_kept")),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("federation", Word, ForeignKey("federations.id"), primary_key=True),
    Column("digest", Word, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("round", Number),
    Index("artifacts_by_digest", "digest"),
    Index("artifacts_of_round", "federation", "round"),
)

programs = Table(
    "programs",
    metadata,
    Column("federation", Word, ForeignKey("federations.id"), primary_key=True),
    Column("key", Word, primary_key=True),
    Column("spec", Text, nullable=False),
    Column("state", _state(ProgramState), nullable=False),
    Column("wanted_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("demand", BigInteger, nullable=False),
    Column("takes", BigInteger, nullable=False),
    Column("tries", BigInteger, nullable=False),
    Column("worker", Text),
    Column("lease_until", Double),
    Column("reason", Text),
    Column("program", Text),
    Index("programs_by_key", "key"),
)

leases = Table(
    "leases",
    metadata,
    Column("name", Word, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("until", Double, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Word, primary_key=True),
    Column("name", Word, nullable=False),
    Column("role", _state(OperatorRole), nullable=False),
    Column("hash", Word, nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
    Column("from_start", Boolean, nullable=False),
    Column("expires_at", Double),
    Column("used_at", Double),
    Column("revoked_at", Double),
    Index(
        "one_token_a_name",
        "name",
        unique=True,
        sqlite_where=text("revoked_at IS NULL"),
        postgresql_where=text("revoked_at IS NULL"),
    ),
)

# Triggers, which its migration creates, refuse to change or delete what is in it.
audit = Table(
    "audit",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False, index=True),
    Column("kind", String(16), nullable=False),
    Column("actor", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("detail", Text, nullable=False),
    Column("hash", Word, nullable=False),
)
