"""Rounds on devices that need no engine: plan, train by the rule that was sent, over the wire, check, combine."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from edgefl.local_rules import TrainingInput, TrainStep, Update, rule_of
from edgefl.masks import Mask, Weights, gather
from edgefl.noise import derive
from edgefl.strategies import ClientUpdate, Model, Participant, PlannedTask, RoundContext, Strategy
from edgefl.values import Budget, LocalWork
from edgefl.wire import ResultBody, decode_result, encode_result
from tests.local_rules.quadratic import Quadratic, nth_batch
from tests.values.samples import PROFILE, RESULT

WORK = LocalWork(epochs=2, batch_size=32)


def device(name: str = "pi-4", *, mask: Mask | None = None, samples: int | None = None, **limits: Any) -> Participant:
    return Participant(name, PROFILE, Budget(**limits), samples, mask)


def round_context(number: int = 0, rounds: int = 10, seed: int = 1) -> RoundContext:
    return RoundContext(number, rounds, seed, WORK)


def trained(
    model: Model,
    name: str,
    planned: PlannedTask,
    when: RoundContext,
    *,
    steps: int = 2,
    accuracy: Callable[[Weights], float] | None = None,
    run: TrainStep | None = None,
) -> tuple[ClientUpdate, Update, bytes]:
    """What a device makes of an order, as the coordinator reads it; how it ended there; the bytes between."""
    seed = derive(when.seed, when.round, name)
    weights = gather(planned.mask, model.weights)
    part = TrainingInput(planned.mask, weights, seed, when.round, when.rounds, steps, planned.extras, accuracy)
    rule, step = rule_of(planned.rule), run or Quadratic(model.graph)
    state = rule.begin(part)
    for number in range(steps):
        rule.step(part, state, nth_batch(number), step)
    update = rule.finish(part, state, nth_batch(steps), step)
    next_mask = None if update.mask.digest == planned.mask.digest else update.mask
    result = dataclasses.replace(RESULT, device_id=name, samples=10)
    body = encode_result(ResultBody(result, planned.mask.digest, update.tensors, next_mask, seed), model.graph)
    came = decode_result(body, model.graph)
    found = ClientUpdate(
        name, planned.mask, planned.rule, seed, model.weights, came.result, came.tensors, next_mask=came.next_mask
    )
    return found, update, body


def a_round(
    strategy: Strategy, model: Model, devices: Sequence[Participant], when: RoundContext, **others: Any
) -> tuple[Model, list[Participant], list[ClientUpdate]]:
    """The next model, the devices with the masks that they have then, and what they sent."""
    made = []
    for name, planned in strategy.plan(model, devices, when).items():
        made.append(trained(model, name, planned, when, **others)[0])
        strategy.check(made[-1])
    masks = {one.device_id: one.next_mask or one.mask for one in made}
    after = [dataclasses.replace(one, mask=masks.get(one.device_id, one.mask)) for one in devices]
    return strategy.combine(model, made, when), after, made
