"""A device's round from its order to what the coordinator decodes: the rule trains, the result goes over the wire."""

import dataclasses

from edgefl.local_rules import TrainingInput, TrainStep, Update, rule_of
from edgefl.masks import Mask, Weights, gather
from edgefl.strategies import ClientUpdate, PlannedTask
from edgefl.values import LocalWork, RuleSettings
from edgefl.wire import ResultBody, decode_result, encode_result
from tests.local_rules.quadratic import Quadratic, nth_batch
from tests.values.samples import RESULT


@dataclasses.dataclass(frozen=True)
class Wired:
    """What arrived, what the device made of its part, and the bytes that were sent."""

    client_update: ClientUpdate
    update: Update
    part: TrainingInput
    body: bytes


def wired(
    planned: PlannedTask,
    base: Weights,
    *,
    seed: int = 1,
    samples: int = 10,
    steps: int = 3,
    trust: float = 1.0,
    device: str = "pi-4",
    run: TrainStep | None = None,
) -> Wired:
    """Do an order on the model `base`."""
    mask, graph = planned.mask, planned.mask.graph
    step = Quadratic(graph) if run is None else run
    rule, part = (
        rule_of(planned.rule),
        TrainingInput(mask, gather(mask, base), seed, steps=steps, extras=planned.extras),
    )
    state = rule.begin(part)
    for number in range(steps):
        rule.step(part, state, nth_batch(number), step)
    update = rule.finish(part, state, nth_batch(steps), step)
    result = dataclasses.replace(RESULT, samples=samples, device_id=device)
    body = encode_result(ResultBody(result, mask.digest, update.tensors, None, seed), graph)
    found = decode_result(body, graph)
    made = ClientUpdate(device, mask, planned.rule, seed, base, found.result, found.tensors, found.next_mask, trust)
    return Wired(made, update, part, body)


def order_of(mask: Mask, rule: RuleSettings, extras: Weights | None = None) -> PlannedTask:
    """An order that asks for nothing but this."""
    return PlannedTask(mask, rule, LocalWork(), {} if extras is None else extras)
