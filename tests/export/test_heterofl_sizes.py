"""HeteroFL's widths on the networks of PerFedMask's Table 1: the average part has as many parameters as published."""

import pytest
import torch

from edgefl.masks import leading_channels
from edgefl.strategies import HeteroFL, Model, Participant, RoundContext
from edgefl.values import Budget, LocalWork
from export.describe_graph import describe
from export.trace_model import trace_model
from export.zoo import ZOO, build
from tests.values.samples import PROFILE


@pytest.mark.parametrize(
    ("name", "weak", "published"), [("preresnet18", 1 / 8, 5.674e6), ("mobilenet", 1 / 4, 1.774e6)]
)
def test_half_of_the_devices_narrow_gives_the_published_average(name: str, weak: float, published: float) -> None:
    graph = describe(trace_model(build(name), torch.zeros(2, *ZOO[name].input_shape), training=True), name)
    narrow = leading_channels(graph, weak).cost.parameters
    budgets = {"strong": graph.parameters, "weak": narrow}
    devices = [Participant(device, PROFILE, Budget(trainable_parameters=size)) for device, size in budgets.items()]
    round_context = RoundContext(round=0, rounds=1, seed=0, work=LocalWork(epochs=1, batch_size=32))
    orders = HeteroFL().plan(Model(graph, {}), devices, round_context)
    assert orders["weak"].mask.cost.parameters == narrow
    mean = sum(order.mask.cost.parameters for order in orders.values()) / 2
    assert mean == pytest.approx(published, abs=500)
