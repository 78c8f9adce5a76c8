"""Devices and join keys in the database."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, exists, func, insert, select, update

from coordinator.storage.database import Database
from coordinator.storage.records import Device, JoinKey, Pulse, TaskState
from coordinator.storage.sql_rows import columns_of, fields_of, first_record, record, records
from coordinator.storage.sql_task_endings import expire_open
from coordinator.storage.store import Admission
from coordinator.storage.tables import devices, keys, tasks

__all__ = ["SqlDevices"]

_ALL = select(*columns_of(devices, Device))
_BY_ID = _ALL.where(devices.c.id == bindparam("id"))
_BY_TOKEN = _ALL.where(devices.c.token_hash == bindparam("token_hash"))
_BY_ENROLMENT = _ALL.where(
    devices.c.federation == bindparam("federation"), devices.c.enrolment_id == bindparam("enrolment_id")
)
_OF_FEDERATION = _ALL.where(devices.c.federation == bindparam("federation")).order_by(devices.c.id)
_FREE = _OF_FEDERATION.where(
    devices.c.revoked_at.is_(None),
    devices.c.seen_at >= bindparam("seen_since"),
    ~exists().where(tasks.c.device == devices.c.id, tasks.c.state == TaskState.OPEN),
)
_COUNT = select(func.count()).select_from(devices).where(devices.c.federation == bindparam("federation"))
_PULSES = (
    select(
        devices.c.id,
        devices.c.seen_at,
        devices.c.done,
        devices.c.failed,
        devices.c.samples,
        devices.c.last_task,
        tasks.c.state,
        tasks.c.round,
        tasks.c.created_at,
        tasks.c.handed_at,
        tasks.c.ended_at,
        devices.c.last_result,
    )
    .join(tasks, tasks.c.id == devices.c.last_task, isouter=True)
    .where(devices.c.federation == bindparam("federation"), devices.c.revoked_at.is_(None))
    .order_by(devices.c.id)
)
_SEEN = (
    update(devices)
    .where(devices.c.id == bindparam("device"), devices.c.seen_at < bindparam("at"))
    .values(seen_at=bindparam("at"))
)
_CORRECT = update(devices).where(devices.c.id == bindparam("device")).values(correction=bindparam("said"))
_REVOCATIONS = select(func.count(), func.max(devices.c.revoked_at)).where(devices.c.revoked_at.is_not(None))
_KEY = select(*columns_of(keys, JoinKey)).where(keys.c.hash == bindparam("hash"))
_KEYS = select(*columns_of(keys, JoinKey)).where(keys.c.federation == bindparam("federation"))


class SqlDevices:
    """What `Store` says of devices and join keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def enrol(self, device: Device, key_hash: str) -> tuple[Admission, Device | None]:
        """Let a device in with a join key, once; `device.enrolled_at` is now."""

        def work(connection: Connection) -> tuple[Admission, Device | None]:
            key = connection.execute(_KEY.with_for_update(key_share=True), {"hash": key_hash}).first()
            refused = _objection(key, device.enrolled_at)
            if key is None or refused is not None:
                return refused or Admission.UNKNOWN_KEY, None
            asked = {"federation": key.federation, "enrolment_id": device.enrolment_id}
            known = connection.execute(_BY_ENROLMENT.with_for_update(key_share=True), asked).first()
            if known is not None:
                return _enrol_again(connection, record(Device, known), device)
            if connection.execute(_BY_ID, {"id": device.id}).first() is not None:
                return Admission.NAME_TAKEN, None
            if key.most_uses is not None and key.uses >= key.most_uses:
                return Admission.SPENT_KEY, None
            # The key's row is locked since it was read: nobody else uses it up in between.
            connection.execute(update(keys).where(keys.c.id == key.id).values(uses=keys.c.uses + 1))
            admitted = replace(device, federation=key.federation, key=key.id)
            connection.execute(insert(devices), fields_of(admitted))
            return Admission.ADMITTED, admitted

        return self._database.write(work)

    def device(self, device: str) -> Device | None:
        """One of them."""
        return first_record(Device, self._database.look_up(_BY_ID, id=device))

    def device_of_token(self, token_hash: str) -> Device | None:
        """The one that shows this token, revoked or not."""
        return first_record(Device, self._database.look_up(_BY_TOKEN, token_hash=token_hash))

    def devices(self, federation: str) -> list[Device]:
        """All of a federation, in the order of their ids."""
        return records(Device, self._database.read(_OF_FEDERATION, federation=federation))

    def count_devices(self, federation: str) -> int:
        """How many a federation has."""
        return int(self._database.read(_COUNT, federation=federation)[0][0])

    def pulses(self, federation: str) -> list[Pulse]:
        """How its devices are doing."""
        return records(Pulse, self._database.read(_PULSES, federation=federation))

    def free_devices(self, federation: str, *, seen_since: float) -> list[Device]:
        """Those that may get a task, in the order of their ids."""
        return records(Device, self._database.read(_FREE, federation=federation, seen_since=seen_since))

    def seen(self, times: Mapping[str, float]) -> None:
        """Note when devices were last heard of; a time never goes back."""
        if times:
            news = [{"device": device, "at": times[device]} for device in sorted(times)]
            self._database.write(lambda connection: connection.execute(_SEEN, news) and None)

    def set_profile(self, device: str, profile: str) -> None:
        """Note what a device can do now."""
        change = update(devices).where(devices.c.id == device).values(profile=profile)
        self._database.write(lambda connection: connection.execute(change) and None)

    def correct(self, corrections: Mapping[str, str]) -> None:
        """Note what devices' rounds really took."""
        if corrections:
            news = [{"device": device, "said": corrections[device]} for device in sorted(corrections)]
            self._database.write(lambda connection: connection.execute(_CORRECT, news) and None)

    def revocations(self) -> tuple[int, float | None]:
        """How many devices were revoked, and when the last one was."""
        ((count, last),) = self._database.read(_REVOCATIONS)
        return count, last

    def revoke_device(self, device: str, at: float) -> bool:
        """Revoke it and expire its open tasks."""
        revoke = update(devices).where(devices.c.id == device, devices.c.revoked_at.is_(None)).values(revoked_at=at)

        def work(connection: Connection) -> bool:
            expire_open(connection, tasks.c.device == device, at=at)  # first, as tasks are locked before devices
            return connection.execute(revoke).rowcount > 0

        return self._database.write(work)

    def add_key(self, key: JoinKey) -> None:
        """Add a join key."""
        self._database.write(lambda connection: connection.execute(insert(keys), fields_of(key)) and None)

    def keys(self, federation: str) -> list[JoinKey]:
        """Those of a federation, oldest first."""
        return records(
            JoinKey, self._database.read(_KEYS.order_by(keys.c.created_at, keys.c.id), federation=federation)
        )

    def key_of_hash(self, key_hash: str) -> JoinKey | None:
        """The join key, whether or not it is still good."""
        return first_record(JoinKey, self._database.read(_KEY, hash=key_hash))

    def revoke_key(self, federation: str, key: str, at: float) -> bool:
        """Revoke a join key; the devices that it let in stay."""
        revoke = (
            update(keys)
            .where(keys.c.federation == federation, keys.c.id == key, keys.c.revoked_at.is_(None))
            .values(revoked_at=at)
        )
        return self._database.write(lambda connection: connection.execute(revoke).rowcount > 0)


def _objection(key: Any, now: float) -> Admission | None:
    if key is None:
        return Admission.UNKNOWN_KEY
    if key.revoked_at is not None:
        return Admission.REVOKED_KEY
    if key.expires_at is not None and key.expires_at <= now:
        return Admission.EXPIRED_KEY
    return None


def _enrol_again(connection: Connection, known: Device, device: Device) -> tuple[Admission, Device | None]:
    if known.revoked_at is not None:
        return Admission.REVOKED_DEVICE, None
    news: dict[str, Any] = {
        "token_hash": device.token_hash,
        "profile": device.profile,
        "software": device.software,
        "seen_at": max(known.seen_at, device.seen_at),
    }
    connection.execute(update(devices).where(devices.c.id == known.id).values(news))
    return Admission.ADMITTED, replace(known, **news)
