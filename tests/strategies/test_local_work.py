"""Less work instead of a smaller submodel: the largest batch, or the most steps, that fit a device's budget."""

from dataclasses import replace

import pytest

from edgefl.artifacts.submodel import bundle_weights
from edgefl.masks import full_mask
from edgefl.strategies import Participant, PlannedTask, RoundContext, strategy_of
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.values import Budget, LocalWork, Setting
from tests.device_runtime.federation import bundle
from tests.values.samples import PROFILE

GRAPH = bundle().graph
WHOLE = full_mask(GRAPH)
WORK = LocalWork(epochs=2, batch_size=32)
CONTEXT = RoundContext(0, 3, seed=1, work=WORK)
SAMPLES = 320
"""20 steps of 32 samples in two epochs."""


def participant(**budget: float | int | None) -> Participant:
    return Participant("pi", PROFILE, Budget(**budget), samples=SAMPLES)  # type: ignore[arg-type]


def seconds(work: LocalWork) -> float:
    """What the whole model takes with this work."""
    estimate = RoundEstimate(GRAPH, participant(), work, 1)
    return estimate.use(estimate.cost(WHOLE)).round_seconds or 0.0


def planned(one: Participant, **settings: Setting) -> PlannedTask | None:
    strategy = strategy_of("fedavg", settings)
    return strategy.plan(strategy.begin(GRAPH, bundle_weights(bundle())), [one], CONTEXT).get("pi")


def test_a_device_that_can_do_the_whole_work_gets_it() -> None:
    for fit_by in ("width", "batch", "steps"):
        task = planned(participant(), fit_by=fit_by)
        assert task is not None
        assert task.work == WORK
        assert task.mask.widths == WHOLE.widths


def test_a_slow_device_takes_as_many_steps_of_fewer_samples() -> None:
    limit = seconds(LocalWork(epochs=6, batch_size=10, most_steps=20))
    task = planned(participant(round_seconds=limit), fit_by="batch")
    assert task is not None
    assert task.work == LocalWork(epochs=1, batch_size=10, most_steps=20), "20 steps of 10 are 200 of 320 samples"
    assert task.mask.widths == WHOLE.widths
    assert seconds(task.work) <= limit < seconds(replace(task.work, batch_size=11))


def test_a_slow_device_takes_fewer_steps_on_full_batches() -> None:
    limit = seconds(replace(WORK, most_steps=7))
    task = planned(participant(round_seconds=limit), fit_by="steps")
    assert task is not None
    assert task.work == replace(WORK, most_steps=7)
    assert task.mask.widths == WHOLE.widths


@pytest.mark.parametrize("fit_by", ["batch", "steps"])
def test_a_device_that_can_do_neither_gets_a_submodel(fit_by: str) -> None:
    small = participant(kept_fraction=0.3)
    task, narrow = planned(small, fit_by=fit_by), planned(small)
    assert task is not None
    assert narrow is not None
    assert (task.mask.digest, task.work) == (narrow.mask.digest, WORK)


def test_memory_makes_batches_smaller_too() -> None:
    estimate = RoundEstimate(GRAPH, participant(), WORK, 1)
    whole = estimate.use(estimate.cost(WHOLE)).peak_bytes or 0
    task = planned(participant(peak_bytes=whole - 1), fit_by="batch")
    assert task is not None
    assert task.work.batch_size < 32
    assert task.mask.widths == WHOLE.widths


def test_the_steps_of_a_small_batch_are_within_its_epochs() -> None:
    for batch in range(2, 32):
        limit = seconds(LocalWork(epochs=40, batch_size=batch, most_steps=20))
        task = planned(participant(round_seconds=limit), fit_by="batch")
        assert task is not None
        size = task.work.batch_size
        assert size >= batch
        assert task.work.epochs * (SAMPLES // size) >= (task.work.most_steps or 20 if size < 32 else 20)
