"""What rounds teach about devices, and what the next plan makes of it."""

from edgefl.federation.settings import (
    BudgetCaps,
    SelectionSettings,
)
from edgefl.federation.settings import RoundSettings as RoundSettings
from edgefl.values import LocalWork, Reason
from tests.coordinator.fleet import answer
from tests.coordinator.stage import Stage
from tests.device_runtime.federation import bundle


def test_a_device_that_was_slower_than_predicted_gets_a_smaller_part(stage: Stage) -> None:
    slow = RoundSettings(count=8, deadline=5)
    one, *_ = stage.begin(1, rounds=slow, selection=SelectionSettings(devices=1), work=LocalWork(epochs=8))
    sizes = []
    for number in range(8):
        stage.advance()
        plan = stage.plan(one)
        sizes.append(stage.context.repository.mask(bundle().graph, plan.mask_body).cost.parameters)
        assert plan.predicted is not None
        assert plan.predicted.seconds is not None
        measured = (4 if number < 4 else 1) * plan.predicted.seconds
        stage.upload(one, plan, answer(stage.context, plan, samples=1000, seconds=measured))
        stage.advance(2)
    assert sizes[0] > sizes[1] > sizes[3], sizes
    assert sizes[7] > sizes[4], sizes


def test_plans_that_do_not_adapt_stay_as_they_are(stage: Stage) -> None:
    fixed = BudgetCaps(adapt=False)
    one, *_ = stage.begin(
        1, rounds=RoundSettings(count=3, deadline=2), selection=SelectionSettings(devices=1), budget=fixed
    )
    masks = set()
    for _ in range(3):
        stage.advance()
        plan = stage.plan(one)
        masks.add(plan.mask)
        stage.upload(one, plan, answer(stage.context, plan, seconds=900.0))
        stage.advance(2)
    assert len(masks) == 1


def test_a_device_that_nothing_was_left_for_is_tried_again(stage: Stage) -> None:
    one, *_ = stage.begin(1, rounds=RoundSettings(count=3, deadline=60), selection=SelectionSettings(devices=1))
    for _ in range(9):
        stage.context.corrections.note_refusal(one.id, Reason.DEADLINE, 1800)
    half_life = 1800.0
    assert stage.context.corrections.of(one, half_life).seconds > 7
    stage.clock.time += 10 * half_life
    assert stage.context.corrections.of(one, half_life).seconds < 1.01
