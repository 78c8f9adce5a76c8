"""Programs in the database: wanted, leased, delivered once, taken over from other federations."""

import json
import threading
from collections.abc import Sequence

import pytest

from coordinator.storage import program_store
from coordinator.storage.records import ProgramRecord, ProgramState
from coordinator.storage.store import Store
from tests.coordinator.storage.small_federation import digest, running

LEASE = 60.0


def want(store: Store, *names: str, federation: str = "fed", at: float = 10.0) -> bool:
    return store.programs.want(federation, {digest(name): json.dumps({"of": name}) for name in names}, at=at)


def made(name: str, *, federation: str = "fed", worker: str = "w1", at: float = 20.0, size: int = 5) -> ProgramRecord:
    document = json.dumps({"pte": digest(f"file of {name} by {worker}"), "size": size})
    return ProgramRecord(
        federation=federation,
        key=digest(name),
        spec=json.dumps({"of": name}),
        state=ProgramState.READY,
        wanted_at=at,
        changed_at=at,
        worker=worker,
        program=document,
    )


def take(store: Store, worker: str = "w1", now: float = 11.0) -> str | None:
    found = store.programs.take("fed", worker, now=now, seconds=LEASE)
    return None if found is None else str(json.loads(found.spec)["of"])


def state(store: Store, name: str, federation: str = "fed") -> ProgramState | None:
    found = store.programs.get(federation, digest(name))
    return None if found is None else found.state


def test_what_plans_want_most_often_is_compiled_first(store: Store) -> None:
    running(store)
    want(store, "seldom", "often")
    want(store, "often", at=12.0)
    assert [take(store, f"w{number}") for number in range(3)] == ["often", "seldom", None]


def test_no_two_workers_compile_the_same_program_at_once(store: Store) -> None:
    running(store)
    want(store, *(f"program {number}" for number in range(12)))
    taken: list[str | None] = []

    def work(worker: str) -> None:
        taken.extend([take(store, f"{worker}-{number}") for number in range(3)])

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None not in taken
    assert len(set(taken)) == 12


def test_a_worker_whose_answer_was_lost_gets_the_same_program_again(store: Store) -> None:
    running(store)
    want(store, "a", "b")
    assert take(store, "w1") == take(store, "w1", now=12.0)
    found = [one for one in store.programs.of("fed") if one.worker == "w1"]
    assert [(one.takes, one.lease_until) for one in found] == [(1, 12.0 + LEASE)]


def test_others_take_over_when_the_lease_of_a_worker_that_vanished_ends(store: Store) -> None:
    running(store)
    want(store, "a")
    assert take(store, "w1") == "a"
    assert take(store, "w2", now=11.0 + LEASE - 1) is None
    assert take(store, "w2", now=11.0 + LEASE) == "a"
    assert not store.programs.renew("fed", digest("a"), "w1", now=80.0, seconds=LEASE)
    assert store.programs.renew("fed", digest("a"), "w2", now=80.0, seconds=LEASE)
    assert take(store, "w3", now=139.0) is None


def test_a_lease_from_before_a_clock_was_set_back_is_over(store: Store) -> None:
    running(store)
    want(store, "a")
    assert take(store, "w1", now=1_000_000.0) == "a"
    assert take(store, "w2", now=11.0) == "a"


def test_a_program_that_ends_every_worker_does_not_keep_them_from_the_others(store: Store) -> None:
    running(store)
    want(store, "deadly", "other")
    want(store, "deadly", at=12.0)
    assert take(store, "w1", now=20.0) == "deadly"
    assert take(store, "w2", now=20.0 + LEASE) == "other"


def test_a_program_that_ended_five_workers_is_not_tried_again_until_an_operator_says_so(store: Store) -> None:
    running(store)
    want(store, "deadly")
    for number in range(5):  # a worker that is started again may have its old name
        assert take(store, "w1" if number < 3 else f"w{number}", now=20.0 + number * LEASE) == "deadly"
        assert state(store, "deadly") is ProgramState.COMPILING
    assert take(store, "w9", now=20.0 + 5 * LEASE - 1) is None
    assert state(store, "deadly") is ProgramState.COMPILING
    assert take(store, "w9", now=20.0 + 5 * LEASE) is None
    found = store.programs.get("fed", digest("deadly"))
    assert found is not None
    assert (found.state, found.reason) == (ProgramState.FAILED, "5 workers ended while they compiled it")
    want(store, "deadly", at=1000.0)
    assert take(store, "w9", now=1000.0) is None
    assert store.programs.want_again("fed", at=1001.0) == 1
    assert take(store, "w9", now=1002.0) == "deadly"
    assert take(store, "w8", now=1002.0 + LEASE) == "deadly"


def test_a_lost_lease_is_one_without_a_word(store: Store) -> None:
    running(store)
    want(store, "a")
    for number in range(6):
        assert take(store, "w1", now=20.0 + number) == "a"
        assert store.programs.give_back("fed", digest("a"), "w1", at=20.5 + number)
    for number in range(4):
        assert take(store, "w1", now=100.0 + number * LEASE) == "a"
    assert store.programs.renew("fed", digest("a"), "w1", now=110.0 + 3 * LEASE, seconds=LEASE)
    assert store.programs.fail("fed", digest("a"), "w1", "no memory", at=330.0) is ProgramState.WANTED
    assert take(store, "w1", now=400.0) == "a"  # three leases were lost, and one program failed
    assert take(store, "w1", now=400.0 + LEASE) == "a"
    assert take(store, "w1", now=400.0 + 2 * LEASE) is None


def test_a_late_worker_may_still_deliver_what_was_given_up(store: Store) -> None:
    running(store)
    want(store, "a")
    for number in range(6):
        take(store, "w1", now=20.0 + number * LEASE)
    assert state(store, "a") is ProgramState.FAILED
    assert store.programs.deliver(made("a", worker="w1"))
    assert state(store, "a") is ProgramState.READY


def test_a_program_that_is_given_back_can_be_taken_at_once(store: Store) -> None:
    running(store)
    want(store, "a")
    take(store, "w1")
    assert not store.programs.give_back("fed", digest("a"), "w2", at=12.0)
    assert store.programs.give_back("fed", digest("a"), "w1", at=12.0)
    assert take(store, "w2", now=12.0) == "a"


def test_after_three_failures_nobody_tries_again_until_an_operator_says_so(store: Store) -> None:
    running(store)
    want(store, "a")
    for number in range(3):
        assert take(store, now=20.0 + number) == "a"
        ended = store.programs.fail("fed", digest("a"), "w1", f"no such operator {number}", at=20.0)
        assert ended is (ProgramState.FAILED if number == 2 else ProgramState.WANTED)
    assert take(store) is None
    want(store, "a", at=30.0)
    assert state(store, "a") is ProgramState.FAILED
    found = store.programs.get("fed", digest("a"))
    assert found is not None
    assert found.reason == "no such operator 2"
    assert store.programs.want_again("fed", at=40.0) == 1
    assert take(store) == "a"


def test_a_failure_of_somebody_else_does_not_count(store: Store) -> None:
    running(store)
    want(store, "a")
    take(store, "w1")
    assert store.programs.fail("fed", digest("a"), "w2", "it is mine", at=12.0) is None
    assert state(store, "a") is ProgramState.COMPILING


def test_the_first_delivery_stays_whoever_holds_the_lease(store: Store) -> None:
    running(store)
    want(store, "a")
    take(store, "w1")
    assert take(store, "w2", now=11.0 + LEASE) == "a"
    late, second = made("a", worker="w1"), made("a", worker="w2")
    assert store.programs.deliver(late)
    assert not store.programs.deliver(second)
    assert store.programs.ready("fed") == [late.program]
    bodies = [json.loads(one.program or "")["pte"] for one in (late, second)]
    assert [store.artifacts.get("fed", body) is not None for body in bodies] == [True, False]


def test_an_upload_is_in_the_audit_log(store: Store) -> None:
    running(store)
    store.programs.deliver(made("a"))
    last = store.audit.last()
    assert last is not None
    assert (last.action, last.target) == ("program.upload", digest("a"))


def test_a_program_that_nobody_wanted_may_be_delivered(store: Store) -> None:
    running(store)
    assert store.programs.deliver(made("a"))
    assert state(store, "a") is ProgramState.READY
    want(store, "a")
    assert state(store, "a") is ProgramState.READY


def test_what_another_federation_has_is_taken_over(store: Store) -> None:
    running(store)
    running(store, name="other")
    store.programs.deliver(made("a", federation="other"))
    assert want(store, "a", "b")
    assert [state(store, name) for name in "ab"] == [ProgramState.READY, ProgramState.WANTED]
    body = json.loads(made("a").program or "")["pte"]
    artifact = store.artifacts.get("fed", body)
    assert artifact is not None
    assert artifact.round is None


def test_a_program_that_is_no_good_can_be_compiled_again(store: Store) -> None:
    running(store)
    store.programs.deliver(made("a", worker="w1"))
    assert store.programs.want_again("fed", digest("a"), at=30.0) == 1
    assert store.programs.ready("fed") == []
    assert take(store, "w2") == "a"
    assert store.programs.deliver(made("a", worker="w2"))


def test_hostile_claims_do_not_make_the_list_grow(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_store, "MOST_PROGRAMS", 5)
    running(store)
    store.programs.deliver(made("ready"))
    want(store, "held", at=1.0)
    take(store, "w1", now=2.0)
    for number in range(20):
        want(store, f"claim {number}", f"other claim {number}", at=10.0 + number)
    names = _names(store)
    assert len(names) == 6
    assert {"ready", "held", "claim 19", "other claim 19"} <= set(names)
    want(store, *(f"many {number}" for number in range(20)), at=100.0)
    assert len(_names(store)) <= 7


def _names(store: Store) -> Sequence[str]:
    return [json.loads(one.spec)["of"] for one in store.programs.of("fed")]


def test_what_trains_is_compiled_before_what_predicts(store: Store) -> None:
    running(store)
    specs = {digest(role): json.dumps({"of": role, "role": role}, separators=(",", ":")) for role in ("infer", "train")}
    store.programs.want("fed", specs, at=10.0)
    store.programs.want("fed", {digest("infer"): specs[digest("infer")]}, at=11.0)
    assert [take(store, worker) for worker in ("w1", "w2")] == ["train", "infer"]
