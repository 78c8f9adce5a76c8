"""Deadlines that an operator changes while a federation runs."""

import pytest

from coordinator.errors import CoordinatorError
from coordinator.federations.lifecycle import Verb, change_deadline, existing, move
from coordinator.rounds.state_machine import RoundStateMachine
from tests.coordinator.stage import Stage


def test_a_new_deadline_holds_for_the_open_round_and_the_next(stage: Stage) -> None:
    devices = stage.begin(2)
    stage.advance()
    before = stage.round.deadline_at
    changed = change_deadline(stage.context, "digits", 600.0)
    assert stage.round.deadline_at == before + 540
    assert stage.context.repository.settings(changed).rounds.deadline == 600
    stage.clock.time += 100  # beyond the old one
    stage.advance()
    assert stage.state == "open"
    assert stage.plan(devices[0]).deadline_seconds == pytest.approx(500)
    change_deadline(stage.context, "digits", 30.0)
    for device in devices:
        stage.context.store.devices.mark_seen({device.id: stage.clock.time})
    stage.advance()
    assert stage.round.attempt == 2
    assert stage.round.deadline_at == stage.clock.time + 30


def test_the_deadline_of_a_federation_that_is_over_stays(stage: Stage) -> None:
    stage.begin(1)
    move(stage.context, "digits", Verb.ABORT)
    with pytest.raises(CoordinatorError, match="aborted"):
        change_deadline(stage.context, "digits", 5.0)


def test_a_deadline_that_changes_while_a_round_is_planned_is_not_lost(stage: Stage) -> None:
    stage.begin(2)
    planned_for = existing(stage.context, "digits")
    change_deadline(stage.context, "digits", 600.0)
    RoundStateMachine(stage.context, planned_for).advance()
    assert stage.context.store.rounds.latest("digits") is None  # it would have the old one, and is not opened
    stage.advance()
    assert stage.round.deadline_at == stage.clock.time + 600


def test_further_tasks_leave_a_changed_deadline_alone(stage: Stage) -> None:
    stage.begin(2)
    stage.advance()
    before = stage.round
    change_deadline(stage.context, "digits", 600.0)
    attempt = before.attempt
    assert stage.context.store.rounds.add_tasks(
        "digits", 0, [], [], attempt=attempt, next_attempt=attempt, deadline_at=None
    )
    assert stage.round.deadline_at == before.deadline_at + 540
