"""One device for which a computation fails costs itself the round, and nobody else."""

from collections.abc import Mapping, Sequence

import pytest

from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import EdgeFLError, WireFormatError
from edgefl.federation.client_selection import participants_of, plan_round
from edgefl.federation.left_out import plan_sound, run_sound
from edgefl.federation.seeds import planning_context
from edgefl.federation.settings import FederationSettings
from edgefl.masks import full_mask
from edgefl.strategies import FedAvg, Model, Participant, PlannedTask, RoundContext
from edgefl.values import Budget, LocalWork
from tests.device_runtime.federation import bundle
from tests.values.samples import PROFILE

TASK = PlannedTask(full_mask(bundle().graph), FedAvg().uplink.rule, LocalWork())
MODEL = Model(bundle().graph, bundle_weights(bundle()))
CONTEXT = planning_context(FederationSettings(name="x"), 0)


def participant(name: str) -> Participant:
    return Participant(name, PROFILE, Budget())


class Fussy(FedAvg):
    """A strategy that fails if one of some devices is among those that it plans for."""

    bad: tuple[str, ...] = ()
    together = False
    """Whether it also fails for more than one device."""

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        names = [one.device_id for one in participants]
        if set(names) & set(self.bad) or (self.together and len(names) > 1):
            raise ZeroDivisionError("by a device's zero")
        return dict.fromkeys(names, TASK)


def fussy(*bad: str, together: bool = False) -> Fussy:
    kind: type[Fussy] = type("Fussy", (Fussy,), {"bad": bad, "together": together})
    return kind()


def test_the_device_to_blame_is_left_out_with_the_reason_and_another_takes_its_place() -> None:
    planned = plan_round(fussy("b"), MODEL, list("abcd"), 3, CONTEXT, participant, str)
    assert sorted(planned.tasks) == ["a", "c", "d"]
    assert planned.left_out == {"b": "ZeroDivisionError: by a device's zero"}


def test_if_all_selected_devices_are_to_blame_the_next_in_the_queue_are_planned_for() -> None:
    planned = plan_round(fussy("a", "b"), MODEL, list("abcd"), 2, CONTEXT, participant, str)
    assert sorted(planned.tasks) == ["c", "d"]
    assert sorted(planned.left_out) == ["a", "b"]


def test_a_strategy_that_fails_for_every_device_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        plan_round(fussy("a", "b"), MODEL, list("ab"), 1, CONTEXT, participant, str)


def test_devices_that_only_fail_together_are_planned_for_alone() -> None:
    planned = plan_sound(lambda some: fussy(together=True).plan(MODEL, some, CONTEXT), list(map(participant, "abc")))
    assert sorted(planned.tasks) == ["a", "b", "c"]
    assert planned.left_out == {}


def test_a_device_that_cannot_be_looked_up_is_left_out() -> None:
    def found(name: str) -> Participant:
        if name == "b":
            raise EdgeFLError("the body sha256:0 is missing", fix="Restore it.")
        return participant(name)

    planned = plan_round(fussy(), MODEL, list("abc"), 3, CONTEXT, found, str)
    assert sorted(planned.tasks) == ["a", "c"]
    assert planned.left_out == {"b": "the body sha256:0 is missing"}
    with pytest.raises(EdgeFLError, match="missing"):
        participants_of("b", found, str)


def test_an_update_that_cannot_be_aggregated_is_left_out() -> None:
    def total(places: Sequence[int]) -> int:
        if 2 in places:
            raise WireFormatError("tensor 'a' is cut off", fix="Send it again.")
        return sum(places)

    assert run_sound(total, 5) == (0 + 1 + 3 + 4, {2: "tensor 'a' is cut off"})


@pytest.mark.parametrize("error", [OSError("the disk does not answer"), MemoryError(), RuntimeError("a bug")])
def test_no_update_is_dropped_because_of_the_machine(error: Exception) -> None:
    def fails(places: Sequence[int]) -> None:
        if 2 in places:
            raise error

    with pytest.raises(type(error)):
        run_sound(fails, 5)


def test_an_aggregation_that_fails_for_all_updates_fails() -> None:
    def fails(places: Sequence[int]) -> None:
        raise ValueError("a bug of the strategy")

    with pytest.raises(ValueError, match="a bug"):
        run_sound(fails, 3)
