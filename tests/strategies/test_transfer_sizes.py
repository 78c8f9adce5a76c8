"""What a plan says of traffic is what is sent."""

import numpy as np
import pytest

from edgefl.artifacts.submodel import bundle_weights
from edgefl.local_rules import Batch, StepResult, TrainingInput, rule_of
from edgefl.masks import Weights, gather
from edgefl.strategies import STRATEGIES, Participant, RoundContext, strategy_of
from edgefl.strategies.transfer_sizes import download_bytes, upload_bytes
from edgefl.values import Budget
from edgefl.wire import ResultBody, encode_result
from tests.device_runtime.federation import bundle
from tests.values.samples import PROFILE, RESULT

ROUND_CONTEXT = RoundContext(round=3, rounds=10, seed=1)


def noisy(weights: Weights, batch: Batch) -> StepResult:
    generator = np.random.default_rng(0)
    gradients = {name: generator.normal(0, 1, array.shape).astype(np.float32) for name, array in weights.items()}
    return StepResult(1.0, np.zeros(1, np.bool_), gradients)


@pytest.mark.parametrize("name", STRATEGIES)
def test_an_update_is_as_large_as_was_said(name: str) -> None:
    strategy, made = strategy_of(name, {}), bundle()
    model = strategy.begin(made.graph, bundle_weights(made))
    participant = Participant("one", PROFILE, Budget(round_seconds=100), samples=100)
    planned = strategy.plan(model, [participant], ROUND_CONTEXT)["one"]
    rule, part = (
        rule_of(planned.rule),
        TrainingInput(planned.mask, gather(planned.mask, model.weights), 5, 3, 10, extras=planned.extras),
    )
    batch, state = Batch(np.zeros(1, np.float32), np.zeros(1, np.int64)), rule.begin(part)
    rule.step(part, state, batch, noisy)
    update = rule.finish(part, state, batch, noisy)
    next_mask = None if update.mask.digest == planned.mask.digest else update.mask
    sent = len(encode_result(ResultBody(RESULT, planned.mask.digest, update.tensors, next_mask, 5), made.graph))
    reports_differ = 400
    assert upload_bytes(model, planned, ROUND_CONTEXT) == pytest.approx(sent, rel=0.1, abs=reports_differ)
    assert download_bytes(model, planned) > 4 * planned.mask.cost.parameters * 0.9
