"""Authentication: who may call what. Every route names its caller (`coordinator.http.routes.registration`).

    PUBLIC    anybody
    JOINER    the holder of a join key of a federation
    DEVICE    a device, by its token
    MEMBER    a joiner or a device
    VIEWER    the holder of a viewer's or an admin's token
    ADMIN     the holder of an admin's token

A secret is sent as `Authorization: Bearer ...`. A missing or unknown one is 401; a device or key that is known but no
longer valid is 403. A device takes both to mean that it must join again. An operator's token that is no longer valid is
401, so that the page asks for another one, and one that may only read is 403 where that is not enough. What belongs to
another device or federation is 404, as if it did not exist.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from starlette.requests import Request

from coordinator.federations.tokens import OperatorRole, hash_of, same
from coordinator.http.connections import claim_connection
from coordinator.http.error_handlers import HttpError, retry_after
from coordinator.http.rate_limits import TokenBuckets, rate_limited_address
from coordinator.http.refusals import OPERATOR, RefusedAttempts
from coordinator.http.server_settings import ServerLimits
from coordinator.rounds.context import Context
from coordinator.storage.records import Actor, Device, JoinKey, OperatorToken
from coordinator.thread_pools import ThreadPools

__all__ = ["Authenticator", "Caller", "actor_of", "address_of"]

_LONGEST_TOKEN = 256
_REMEMBERED_SECONDS = 60.0
_REVOCATION_SECONDS = 1.0
_MOST_REMEMBERED = 50_000
_USED_SECONDS = 60.0
"""How often the use of an operator's token is noted."""


class Caller(StrEnum):
    """Who may call a route."""

    PUBLIC = "public"
    JOINER = "joiner"
    DEVICE = "device"
    MEMBER = "member"
    VIEWER = "viewer"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class _Known:
    device: Device
    until: float
    stamp: int
    """The authenticator's stamp when the device was read."""


class Authenticator:
    """Authenticates callers."""

    def __init__(
        self,
        context: Context,
        threads: ThreadPools,
        limits: ServerLimits,
        *,
        refused: RefusedAttempts,
        seen: Callable[[str], None] = lambda device: None,
    ) -> None:
        self._context, self._threads, self._refused, self._seen = context, threads, refused, seen
        self._requests = TokenBuckets(limits.requests_rate, limits.requests_burst)
        self._joins = TokenBuckets(limits.joins_rate, limits.joins_burst)
        self._failures = TokenBuckets(limits.failures_rate, limits.failures_burst)
        self._known: OrderedDict[str, _Known] = OrderedDict()
        """Devices by the hash of their token."""
        self._stamp, self._checked_at = 0, 0.0
        self._revocations: tuple[int, float | None] | None = None
        self._used: dict[str, float] = {}
        """When the use of operators' tokens was last noted, by their ids."""
        self._notes: set[asyncio.Future[None]] = set()

    async def admin(self, request: Request) -> None:
        """Authenticate an admin."""
        if await self.viewer(request) is not OperatorRole.ADMIN:
            raise HttpError(403, "this token may only read", fix="Use an admin's token for that.")

    async def viewer(self, request: Request) -> OperatorRole:
        """Authenticate a viewer or an admin, and return which."""
        token = await self._operator(hash_of(self.bearer(request)))
        address, now = address_of(request), self._context.now()
        if token is None:
            fix = "Use one of those in the coordinator's state folder, or ask an admin for one."
            raise self._failed(request, "this is not an admin or viewer token", fix)
        by = Actor(token.role.value, token.name, address)
        if not token.is_valid(now):
            what = "was revoked or replaced" if token.revoked_at is not None else "has expired"
            raise self._failed(request, f"the token {token.name!r} {what}", "Ask an admin for a new one.", by=by)
        request.scope[OPERATOR] = by
        claim_connection(request.scope, f"operator {token.name}")
        self._note_used(token, now)
        return token.role

    async def still_operator(self, request: Request) -> bool:
        """Return whether the token of a request that was answered long ago is still valid."""
        token = await self._operator(hash_of(self.bearer(request)))
        return token is not None and token.is_valid(self._context.now())

    async def _operator(self, hashed: str) -> OperatorToken | None:
        # Read for every request, of which there are few: a revocation then holds at once, for every worker.
        token = await self._threads.read(self._context.store.tokens.by_hash, hashed)
        return token if token is not None and same(token.hash, hashed) else None

    def _note_used(self, token: OperatorToken, now: float) -> None:
        """Note the use of a token beside the request, which must not wait for the disk or fail with it."""
        if now < self._used.get(token.id, float("-inf")) + _USED_SECONDS:
            return
        self._used[token.id] = now
        note = asyncio.ensure_future(self._threads.run(self._context.store.tokens.mark_used, token, now))
        self._notes.add(note)
        note.add_done_callback(self._noted)

    def _noted(self, note: "asyncio.Future[None]") -> None:
        self._notes.discard(note)
        if not note.cancelled():
            note.exception()  # a database that does not answer is reported by what needs it

    async def device(self, request: Request) -> Device:
        """Authenticate a device, and return it."""
        device = await self._device(request)
        if device is None:
            raise self._failed(request, "the token is unknown", "Join again with a join key.")
        return device

    async def joiner(self, request: Request) -> JoinKey:
        """Authenticate the holder of a join key, and return the key. The enrolment checks whether it is used up."""
        key = await self._key(request)
        if key is None:
            raise self._failed(request, "the join key is unknown", "Ask the operator of the federation for one.")
        return key

    async def member(self, request: Request) -> str:
        """Authenticate a device or the holder of a join key, and return the federation."""
        member = await self._device(request) or await self._key(request)
        if member is None:
            raise self._failed(
                request, "this is neither a known token nor a known join key", "Ask the operator for a join key."
            )
        return member.federation

    def forget(self, device: str) -> None:
        """Forget a device whose token changed or that was revoked."""
        for hashed in [hashed for hashed, known in self._known.items() if known.device.id == device]:
            del self._known[hashed]

    async def _device(self, request: Request) -> Device | None:
        hashed = hash_of(self.bearer(request))
        known = self._known.get(hashed)
        if known is not None and await self._is_fresh(known):
            device = known.device
        else:
            # Read even if the address guesses tokens: known devices behind it must not be locked out.
            found = await self._threads.read(self._context.store.devices.by_token, hashed)
            if found is None or not same(found.token_hash, hashed):
                return None
            device = found
            self._remember(hashed, device)
        if device.revoked_at is not None:
            self._note(Actor("device", device.id, address_of(request)), request, "the device was revoked")
            raise HttpError(
                403,
                f"the device {device.name!r} was revoked",
                fix="Ask the operator; a new device needs a new home folder.",
            )
        claim_connection(request.scope, f"device {device.id}")
        wait = self._requests.take(device.id)
        if wait:
            raise HttpError(
                429,
                f"the device {device.name!r} sends requests too often",
                fix="Send them less often.",
                headers=retry_after(wait),
            )
        request.scope["edgefl.device"] = device.id
        self._seen(device.id)
        return device

    async def _is_fresh(self, known: _Known) -> bool:
        """Return whether a cached device is valid. Check once a second whether another worker revoked a device."""
        now = time.monotonic()
        if now >= self._checked_at + _REVOCATION_SECONDS:
            self._checked_at = now
            revocations = await self._threads.read(self._context.store.devices.revocations)
            if revocations != self._revocations:
                self._revocations = revocations
                self._stamp += 1
        return now < known.until and known.stamp == self._stamp

    async def _key(self, request: Request) -> JoinKey | None:
        hashed = hash_of(self.bearer(request))
        self._check_address(request)
        key = await self._threads.read(self._context.store.keys.by_hash, hashed)
        if key is None or not same(key.hash, hashed):
            return None
        revoked, expired = key.revoked_at is not None, key.is_expired(self._context.now())
        if revoked or expired:
            problem = f"the join key {'was revoked' if revoked else 'has expired'}"
            self._note(Actor("key", key.id, address_of(request)), request, problem)
            raise HttpError(403, problem, fix="Ask for a new one.")
        wait = self._joins.take(key.id)
        if wait:
            raise HttpError(
                429, "this join key is used too often", fix="Try again a little later.", headers=retry_after(wait)
            )
        return key

    def _remember(self, hashed: str, device: Device) -> None:
        self._known[hashed] = _Known(device, time.monotonic() + _REMEMBERED_SECONDS, self._stamp)
        self._known.move_to_end(hashed)
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    def bearer(self, request: Request) -> str:
        """Return the secret that a request carries."""
        given = [value for name, value in request.scope["headers"] if name == b"authorization"]
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        token = token.strip()
        if scheme.lower() != b"bearer" or not 0 < len(token) <= _LONGEST_TOKEN:
            raise self._unauthorised(request, "the request has no token", "Send one as 'Authorization: Bearer ...'.")
        return token.decode("latin-1")

    def _check_address(self, request: Request) -> None:
        """Reject an address that guesses, before any join key is looked up."""
        if self._failures.empty(_bucket(request)):
            raise _guessing(self._failures.take(_bucket(request)))

    def _failed(self, request: Request, problem: str, fix: str, *, by: Actor | None = None) -> HttpError:
        """Return the error for a secret that opens nothing, which the audit log counts."""
        self._note(by or Actor("anyone", "", address_of(request)), request, problem)
        return self._unauthorised(request, problem, fix)

    def _note(self, by: Actor, request: Request, problem: str) -> None:
        self._refused.note(by, "access", getattr(request.scope.get("route"), "path", ""), problem=problem)

    def _unauthorised(self, request: Request, problem: str, fix: str) -> HttpError:
        wait = self._failures.take(_bucket(request))
        if wait:
            return _guessing(wait)
        return HttpError(401, problem, fix=fix, headers={"WWW-Authenticate": 'Bearer realm="edgefl"'})


def _guessing(wait: float) -> HttpError:
    return HttpError(
        429,
        "too many unknown tokens came from this address",
        fix="Wait, then use a known one.",
        headers=retry_after(wait),
    )


def actor_of(request: Request) -> Actor:
    """Return the operator who sent an authenticated request, for the audit log."""
    actor: Actor = request.scope[OPERATOR]
    return actor


def address_of(request: Request) -> str:
    """Return the address that a request came from."""
    return request.client.host if request.client else ""


def _bucket(request: Request) -> str:
    return rate_limited_address(address_of(request))
