"""What workers tell each other through the database."""

from coordinator.storage.store import Store


def test_a_lease_has_one_owner_who_may_renew_it(store: Store) -> None:
    assert store.workers.take_lease("driver", "one", now=10.0, seconds=5.0)
    assert not store.workers.take_lease("driver", "two", now=14.9, seconds=5.0)
    assert store.workers.take_lease("driver", "one", now=14.0, seconds=5.0)
    assert not store.workers.take_lease("driver", "two", now=18.9, seconds=5.0)
    assert store.workers.take_lease("other", "two", now=10.0, seconds=5.0)


def test_who_waited_for_the_lock_takes_no_lease_that_was_renewed_meanwhile(store: Store) -> None:
    assert store.workers.take_lease("driver", "one", now=12.0, seconds=5.0)
    assert not store.workers.take_lease("driver", "two", now=10.0, seconds=5.0)
    assert store.workers.take_lease("driver", "two", now=1.0, seconds=5.0), "a clock was set back"


def test_a_lease_that_ran_out_is_taken_over(store: Store) -> None:
    assert store.workers.take_lease("driver", "one", now=10.0, seconds=5.0)
    assert store.workers.take_lease("driver", "two", now=15.0, seconds=5.0)
    assert not store.workers.take_lease("driver", "one", now=16.0, seconds=5.0)


def test_a_lease_is_let_go_by_its_owner_alone(store: Store) -> None:
    assert store.workers.take_lease("driver", "one", now=10.0, seconds=5.0)
    store.workers.release_lease("driver", "two")
    assert not store.workers.take_lease("driver", "two", now=11.0, seconds=5.0)
    store.workers.release_lease("driver", "one")
    assert store.workers.take_lease("driver", "two", now=11.0, seconds=5.0)
