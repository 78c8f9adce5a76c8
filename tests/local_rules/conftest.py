"""A small network that most tests of rules share."""

import pytest

from edgefl.model_graph import GraphBuilder, ModelGraph


@pytest.fixture(scope="session")
def small() -> ModelGraph:
    """Two convolutions, a norm with statistics, a head."""
    build = GraphBuilder("small", channels=1, positions=16)
    x = build.norm("norm", build.conv("conv1", build.input, 2, kernel=3, positions=16), statistics=True)
    x = build.conv("conv2", x, 4, kernel=3, positions=16, bias=True)
    build.linear("head", build.flatten(build.pool(x, positions=4)), 3, head=True)
    return build.finish()
