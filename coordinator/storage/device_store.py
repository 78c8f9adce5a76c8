"""Devices in the database, and their enrolment with a join key."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, exists, func, insert, or_, select, update

from coordinator.storage.audit_log import record as record_audit
from coordinator.storage.database import Database
from coordinator.storage.join_key_store import KEY_BY_HASH
from coordinator.storage.plan_json import first_engine
from coordinator.storage.records import (
    CLOCK_SLACK,
    COORDINATOR,
    Actor,
    Admission,
    Device,
    JoinKey,
    Pulse,
    TaskState,
    name_of,
    qualified_id,
)
from coordinator.storage.row_mapping import columns_of, fields_of, first_record, record, records
from coordinator.storage.tables import devices, keys, tasks
from coordinator.storage.task_endings import expire_open

__all__ = ["DeviceStore"]

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
        devices.c.left_out,
        devices.c.engine,
    )
    .join(tasks, tasks.c.id == devices.c.last_task, isouter=True)
    .where(devices.c.federation == bindparam("federation"), devices.c.revoked_at.is_(None))
    .order_by(devices.c.id)
)
_SEEN = (
    update(devices)
    .where(
        devices.c.id == bindparam("device"),
        or_(devices.c.seen_at < bindparam("at"), devices.c.seen_at > bindparam("at") + CLOCK_SLACK),
    )
    .values(seen_at=bindparam("at"))
)
_CORRECT = update(devices).where(devices.c.id == bindparam("device")).values(correction=bindparam("said"))
_LEAVE_OUT = update(devices).where(devices.c.id == bindparam("device")).values(left_out=bindparam("because"))
_LEFT_OUT = (
    select(devices.c.id, devices.c.left_out)
    .where(
        devices.c.federation == bindparam("federation"), devices.c.left_out.is_not(None), devices.c.revoked_at.is_(None)
    )
    .order_by(devices.c.id)
)
_REVOCATIONS = select(func.count(), func.max(devices.c.revoked_at)).where(devices.c.revoked_at.is_not(None))


class DeviceStore:
    """The devices of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def enrol(self, device: Device, key_hash: str, *, address: str = "") -> tuple[Admission, Device | None]:
        """Enrol a device with a join key.

        `device.federation` and `device.key` are taken from the key, not from the argument; `device.enrolled_at` is now.
        `device.id` is the name that it wants, which may be taken in other federations.
        The same enrolment id again, with a key of the same federation, is the same device: it keeps its id, gets the
        new token hash, profile, software, capabilities and samples, and does not use the key up further (so a spent
        key will do, while a revoked or expired one will not). `address` is where it called from, for the audit log.
        """

        def work(connection: Connection) -> tuple[Admission, Device | None]:
            key = connection.execute(KEY_BY_HASH.with_for_update(key_share=True), {"hash": key_hash}).first()
            refused = _objection(key, device.enrolled_at)
            if key is None or refused is not None:
                return refused or Admission.UNKNOWN_KEY, None
            enrolment = {"federation": key.federation, "enrolment_id": device.enrolment_id}
            known = connection.execute(_BY_ENROLMENT.with_for_update(key_share=True), enrolment).first()
            if known is not None:
                return _enrol_again(connection, record(Device, known), device)
            device_id = _free_id(connection, device.id, key.federation)
            if device_id is None:
                return Admission.NAME_TAKEN, None
            if key.most_uses is not None and key.uses >= key.most_uses:
                return Admission.SPENT_KEY, None
            # The key's row has been locked since it was read: nobody else uses it up in between.
            connection.execute(update(keys).where(keys.c.id == key.id).values(uses=keys.c.uses + 1))
            engine = first_engine(device.capabilities)
            admitted = replace(device, id=device_id, federation=key.federation, key=key.id, engine=engine)
            connection.execute(insert(devices), fields_of(admitted))
            by = Actor("key", key.id, address)
            record_audit(connection, device.enrolled_at, by, "device.enrol", device_id, federation=key.federation)
            return Admission.ADMITTED, admitted

        return self._database.write(work)

    def get(self, device: str) -> Device | None:
        """Return a device by its id, revoked or not."""
        return first_record(Device, self._database.look_up(_BY_ID, id=device))

    def named(self, federation: str, name: str) -> Device | None:
        """Return a device of a federation by its name, revoked or not."""
        found = (self.get(device_id) for device_id in (name, qualified_id(name, federation)))
        return next((device for device in found if device is not None and device.federation == federation), None)

    def by_token(self, token_hash: str) -> Device | None:
        """Return the device with this token, revoked or not."""
        return first_record(Device, self._database.look_up(_BY_TOKEN, token_hash=token_hash))

    def of(self, federation: str) -> list[Device]:
        """Return the devices of a federation, ordered by id."""
        return records(Device, self._database.read(_OF_FEDERATION, federation=federation))

    def count(self, federation: str) -> int:
        """Return how many devices a federation has, revoked ones included."""
        return int(self._database.read(_COUNT, federation=federation)[0][0])

    def pulses(self, federation: str) -> list[Pulse]:
        """Return how the devices that are not revoked are doing, ordered by id."""
        return records(Pulse, self._database.read(_PULSES, federation=federation))

    def free(self, federation: str, *, seen_since: float) -> list[Device]:
        """Return the devices that are not revoked, were seen since then and have no open task, ordered by id."""
        return records(Device, self._database.read(_FREE, federation=federation, seen_since=seen_since))

    def mark_seen(self, times: Mapping[str, float]) -> None:
        """Note when devices were last seen; a time goes back only if it was in the future."""
        if times:
            news = [{"device": device, "at": times[device]} for device in sorted(times)]
            self._database.write(lambda connection: connection.execute(_SEEN, news) and None)

    def bound_seen(self, federation: str, now: float) -> None:
        """Let devices that were seen in the future, before a clock was set back, count as seen now."""
        future = (devices.c.federation == federation, devices.c.seen_at > now + CLOCK_SLACK)
        bound = update(devices).where(*future).values(seen_at=now)
        self._database.write(lambda connection: connection.execute(bound) and None)

    def set_profile(self, device: str, profile: str) -> None:
        """Note what a device can do now."""
        change = update(devices).where(devices.c.id == device).values(profile=profile)
        self._database.write(lambda connection: connection.execute(change) and None)

    def set_capabilities(self, device: str, capabilities: str) -> None:
        """Note what the software of a device can run now. Why it was left out may no longer hold."""
        news = {"capabilities": capabilities, "engine": first_engine(capabilities), "left_out": None}
        change = update(devices).where(devices.c.id == device).values(news)
        self._database.write(lambda connection: connection.execute(change) and None)

    def set_samples(self, device: str, samples: int) -> None:
        """Note how many training samples a device has now. Why it was left out may no longer hold."""
        change = update(devices).where(devices.c.id == device).values(samples=samples, left_out=None)
        self._database.write(lambda connection: connection.execute(change) and None)

    def set_corrections(self, corrections: Mapping[str, str]) -> None:
        """Note, by device, what its rounds really took against what was predicted."""
        if corrections:
            news = [{"device": device, "said": corrections[device]} for device in sorted(corrections)]
            self._database.write(lambda connection: connection.execute(_CORRECT, news) and None)

    def set_left_out(self, reasons: Mapping[str, str]) -> None:
        """Note, by device, why planning for it failed; a task that it gets later ends that."""
        if reasons:
            news = [{"device": device, "because": reasons[device]} for device in sorted(reasons)]
            self._database.write(lambda connection: connection.execute(_LEAVE_OUT, news) and None)

    def left_out(self, federation: str) -> dict[str, str]:
        """Return why planning failed for devices that are not revoked, by name."""
        return {name_of(row[0]): row[1] for row in self._database.read(_LEFT_OUT, federation=federation)}

    def revocations(self) -> tuple[int, float | None]:
        """Return how many devices were revoked, and when the last one was: it changes whenever one is revoked."""
        ((count, last),) = self._database.read(_REVOCATIONS)
        return count, last

    def revoke(self, device: str, at: float, *, by: Actor = COORDINATOR) -> bool:
        """Revoke a device and expire its open tasks; return False if it does not exist or is already revoked."""
        revoke = update(devices).where(devices.c.id == device, devices.c.revoked_at.is_(None)).values(revoked_at=at)

        def work(connection: Connection) -> bool:
            expire_open(connection, tasks.c.device == device, at=at)  # first: tasks are locked before devices
            if not connection.execute(revoke).rowcount:
                return False
            record_audit(connection, at, by, "device.revoke", device)
            return True

        return self._database.write(work)


def _objection(key: Any, now: float) -> Admission | None:
    if key is None:
        return Admission.UNKNOWN_KEY
    if key.revoked_at is not None:
        return Admission.REVOKED_KEY
    if record(JoinKey, key).is_expired(now):
        return Admission.EXPIRED_KEY
    return None


def _free_id(connection: Connection, name: str, federation: str) -> str | None:
    """Return the id of a new device: its name, unless another federation has one of that name; None if its own has."""
    free = None
    for device_id in (qualified_id(name, federation), name):
        found = connection.execute(_BY_ID, {"id": device_id}).first()
        if found is None:
            free = device_id
        elif found.federation == federation:
            return None
    return free


def _enrol_again(connection: Connection, known: Device, device: Device) -> tuple[Admission, Device | None]:
    if known.revoked_at is not None:
        return Admission.REVOKED_DEVICE, None
    news: dict[str, Any] = {
        "token_hash": device.token_hash,
        "profile": device.profile,
        "software": device.software,
        "capabilities": device.capabilities,
        "engine": first_engine(device.capabilities),
        "seen_at": device.seen_at,
    }
    if device.samples is not None:
        news["samples"] = device.samples
    connection.execute(update(devices).where(devices.c.id == known.id).values(news))
    return Admission.ADMITTED, replace(known, **news)
