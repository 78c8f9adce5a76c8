"""The operators' tokens: named, replaced and revoked one by one, and never all of them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from coordinator.storage.records import Actor, OperatorRole
from coordinator.storage.store import Store
from coordinator.storage.token_store import Revocation
from tests.coordinator.storage.small_federation import a_token

BY = Actor("admin", "alice", "10.0.0.1")


def names(store: Store) -> dict[str, bool]:
    """Return the newest token of each name, and whether it is valid at second 50."""
    return {token.name: token.is_valid(50.0) for token in store.tokens.all()}


def test_a_name_belongs_to_one_token_until_it_is_revoked(store: Store) -> None:
    ci = a_token("ci", OperatorRole.VIEWER)
    assert store.tokens.add(ci, by=BY)
    assert not store.tokens.add(a_token("ci", at=5.0), by=BY)
    assert store.tokens.by_hash(ci.hash) == ci
    assert store.tokens.revoke("ci", 6.0, by=BY) is Revocation.DONE
    assert store.tokens.revoke("ci", 7.0, by=BY) is Revocation.UNKNOWN
    assert store.tokens.by_hash(ci.hash) == replace(ci, revoked_at=6.0)
    assert store.tokens.add(a_token("ci", at=8.0), by=BY)
    assert [token.revoked_at for token in store.tokens.all()] == [6.0, None]


def test_the_last_admin_that_is_valid_stays(store: Store) -> None:
    store.tokens.add(a_token("alice"), by=BY)
    store.tokens.add(replace(a_token("bob"), expires_at=20.0), by=BY)
    store.tokens.add(a_token("eve", OperatorRole.VIEWER), by=BY)
    assert store.tokens.revoke("alice", 30.0, by=BY) is Revocation.LAST_ADMIN, "bob's has expired"
    assert store.tokens.revoke("bob", 30.0, by=BY) is Revocation.DONE, "it opens nothing any more"
    assert store.tokens.revoke("eve", 30.0, by=BY) is Revocation.DONE
    assert names(store) == {"alice": True, "bob": False, "eve": False}
    store.tokens.add(a_token("carol"), by=BY)
    assert store.tokens.revoke("alice", 31.0, by=BY) is Revocation.DONE
    assert store.tokens.revoke("carol", 31.0, by=BY) is Revocation.LAST_ADMIN


def test_two_admins_who_revoke_each_other_leave_one(store: Store) -> None:
    for number in range(8):
        one, other = f"one-{number}", f"other-{number}"
        store.tokens.add(a_token(one), by=BY)
        store.tokens.add(a_token(other), by=BY)
        for admin in [token.name for token in store.tokens.all() if token.name not in (one, other)]:
            store.tokens.revoke(admin, 40.0, by=BY)
        with ThreadPoolExecutor(2) as threads:
            outcomes = list(threads.map(lambda name: store.tokens.revoke(name, 41.0, by=BY), [one, other]))
        assert sorted(outcomes) == [Revocation.DONE, Revocation.LAST_ADMIN]


def test_a_rotated_token_keeps_its_name_and_role_and_the_old_secret_is_known_as_revoked(store: Store) -> None:
    old = a_token("alice", OperatorRole.VIEWER)
    new = replace(a_token("alice", OperatorRole.ADMIN, at=9.0), expires_at=99.0)
    store.tokens.add(old, by=BY)
    assert store.tokens.rotate(new, by=BY)
    assert store.tokens.by_hash(old.hash) == replace(old, revoked_at=9.0)
    assert store.tokens.by_hash(new.hash) == replace(new, role=OperatorRole.VIEWER)
    assert not store.tokens.rotate(a_token("nobody"), by=BY)


def test_the_token_of_the_start_is_made_once_replaced_on_purpose_and_never_revived(store: Store) -> None:
    first = replace(a_token("admin", at=1.0), from_start=True)
    second, third = (replace(a_token("admin", at=at), from_start=True) for at in (2.0, 3.0))
    assert store.tokens.adopt(first, replaces=False) == first
    assert store.tokens.adopt(second, replaces=False) == first
    assert store.tokens.by_hash(second.hash) is None
    assert store.tokens.adopt(second, replaces=True) == second
    assert store.tokens.adopt(replace(first, id="again"), replaces=True) == replace(first, revoked_at=2.0)
    assert store.tokens.adopt(third, replaces=False) == second
    assert store.tokens.by_hash(second.hash) == second
    store.tokens.add(a_token("alice"), by=BY)
    store.tokens.revoke("admin", 5.0, by=BY)
    assert store.tokens.adopt(second, replaces=True).revoked_at == 5.0
    assert store.tokens.adopt(third, replaces=False).revoked_at == 5.0, "nobody gets a new one by losing a file"
    assert store.tokens.adopt(third, replaces=True) == third, "but whoever has the machine may give it one"


def test_the_time_of_use_is_noted_once_a_minute_and_never_goes_back(store: Store) -> None:
    store.tokens.add(a_token("alice"), by=BY)

    def used() -> float | None:
        (token,) = store.tokens.all()
        return token.used_at

    for at, noted in ((100.0, 100.0), (130.0, 100.0), (161.0, 161.0), (90.0, 161.0)):
        store.tokens.mark_used(store.tokens.all()[0], at)
        assert used() == noted


def test_every_change_of_a_token_is_in_the_audit_log(store: Store) -> None:
    before = store.audit.last()
    store.tokens.add(a_token("alice"), by=BY)
    store.tokens.add(a_token("alice", at=5.0), by=BY)  # refused: no entry
    store.tokens.add(a_token("bob"), by=BY)
    store.tokens.rotate(a_token("alice", at=6.0), by=BY)
    store.tokens.revoke("bob", 7.0, by=BY)
    store.tokens.revoke("alice", 8.0, by=BY)  # the last one: no entry
    entries = store.audit.page(0 if before is None else before.number)
    assert [(entry.action, entry.target, entry.actor, entry.address) for entry in entries] == [
        ("token.create", "alice", "alice", "10.0.0.1"),
        ("token.create", "bob", "alice", "10.0.0.1"),
        ("token.rotate", "alice", "alice", "10.0.0.1"),
        ("token.revoke", "bob", "alice", "10.0.0.1"),
    ]
    assert not any(token.hash in str(entries) for token in store.tokens.all())


@pytest.mark.parametrize("name", ["", "nobody", "\0", "\ud800"])
def test_an_unknown_name_is_unknown(store: Store, name: str) -> None:
    assert store.tokens.revoke(name, 1.0, by=BY) is Revocation.UNKNOWN
