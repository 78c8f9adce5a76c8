import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from edgefl.errors import EdgeFLError, MaskError
from edgefl.model_graph import ChannelGroup, Layer, ModelGraph, Span, TensorRole, TensorSpec, Term
from edgefl.values import dumps, loads
from examples.networks import character_lstm, cnn4, preresnet18
from tests.random_models import model_graphs


def small(**changes: Any) -> ModelGraph:
    """Two linear layers, 3 -> 4 -> 2."""
    fields: dict[str, Any] = {
        "name": "small",
        "tensors": (TensorSpec("a", (4, 3), TensorRole.WEIGHT, 1), TensorSpec("b", (2, 4), TensorRole.HEAD, 1)),
        "layers": (Layer("first", "linear", "first", ("a",)), Layer("head", "linear", "head", ("b",), ("first",))),
        "groups": (ChannelGroup("hidden", 4, (Span("a", 0), Span("b", 1))),),
    }
    return ModelGraph(**(fields | changes))


def test_published_parameter_counts_are_reproduced() -> None:
    graph = cnn4()
    by_role = {role: sum(t.size for t in graph.tensors if t.role is role) for role in TensorRole}
    assert by_role[TensorRole.WEIGHT] + by_role[TensorRole.HEAD] == 389_920
    assert by_role[TensorRole.NORM] == 960
    assert preresnet18().parameters == 11_172_170
    head = preresnet18().layer["head"].tensors
    assert preresnet18().parameters - sum(preresnet18().tensor[name].size for name in head) == 11_167_040


def test_blocks_keep_their_layers_in_order() -> None:
    blocks = preresnet18().blocks
    assert len(blocks) == 11  # ten that PerFedMask freezes, and the head
    assert blocks["stage1.0"] == tuple(f"stage1.0.{part}" for part in ("norm1", "shortcut", "conv1", "norm2", "conv2"))


def test_a_residual_connection_makes_one_group() -> None:
    graph = preresnet18()
    (group,) = [g for g in graph.groups if Span("stage1.0.conv2.weight", 0) in g.spans]
    assert Span("stage1.0.shortcut.weight", 0) in group.spans
    assert Span("stage1.1.norm1.weight", 0) in group.spans
    assert Span("stage1.1.conv2.weight", 0) in group.spans
    assert Span("stage1.1.norm2.weight", 0) not in group.spans


def test_lstm_gates_are_stacked() -> None:
    graph = character_lstm()
    group = graph.group["lstm1"]
    assert Span("lstm1.weight_hh", 0, stacks=4, stride=256) in group.spans
    assert Span("lstm1.weight_hh", 1) in group.spans
    assert Span("lstm2.weight_ih", 1) in group.spans
    assert graph.parameters == 80 * 8 + 4 * 256 * (8 + 256 + 2) + 4 * 256 * (256 + 256 + 2) + 80 * 257


@given(model_graphs())
def test_json_gives_back_the_same_graph_and_digest(graph: ModelGraph) -> None:
    again = loads(ModelGraph, dumps(graph))
    assert again == graph
    assert again.digest == graph.digest


def test_the_digest_notices_every_change() -> None:
    graph = small()
    renamed = dataclasses.replace(graph, name="other")
    wider = small(groups=(ChannelGroup("hidden", 4, (Span("a", 0), Span("b", 1)), multiple_of=2),))
    assert len({graph.digest, renamed.digest, wider.digest}) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tensors": (TensorSpec("a", (4, 3), TensorRole.WEIGHT),)}, "'b' is not both described and owned"),
        ({"tensors": (TensorSpec("a", (4, 3), TensorRole.WEIGHT),) * 2}, "listed twice"),
        ({"layers": (Layer("first", "x", "1", ("a",), ("head",)), Layer("head", "x", "2", ("b",)))}, "come before"),
        ({"layers": (Layer("first", "x", "1", ("a",)), Layer("first", "x", "1", ("b",)))}, "listed twice"),
        (
            {
                "layers": (
                    Layer("first", "x", "1", ("a",)),
                    Layer("head", "x", "2", ("b",)),
                    Layer("last", "x", "1", ()),
                )
            },
            "after another block began",
        ),
        ({"groups": (ChannelGroup("hidden", 5, (Span("a", 0),)),)}, "does not fit axis 0"),
        ({"groups": (ChannelGroup("hidden", 4, (Span("a", 0, offset=1),)),)}, "does not fit axis 0"),
        ({"groups": (ChannelGroup("hidden", 4, (Span("a", 2),)),)}, "does not exist"),
        ({"groups": (ChannelGroup("hidden", 4, (Span("c", 0),)),)}, "does not exist"),
        ({"groups": (ChannelGroup("hidden", 4, (Span("a", 0), Span("a", 0))),)}, "claimed twice"),
        ({"groups": (ChannelGroup("hidden", 2, (Span("a", 0, stacks=2, stride=1),)),)}, "claimed twice"),
        ({"groups": (ChannelGroup("hidden", 4, (Span("a", 0),), multiple_of=3),)}, "multiples of 3"),
    ],
)
def test_an_inconsistent_graph_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MaskError, match=message):
        small(**changes)


@pytest.mark.parametrize("text", ["{}", "[]", '{"schema":"edgefl.model_graph/1","name":"x"}'])
def test_json_that_is_no_graph_is_refused(text: str) -> None:
    with pytest.raises(EdgeFLError):
        loads(ModelGraph, text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TensorSpec("a", (4, 0), TensorRole.WEIGHT), r"shape\[1\]"),
        (lambda: TensorSpec("a", (2**16, 2**16), TensorRole.WEIGHT), "too many entries"),
        (lambda: TensorSpec("a\nb", (4,), TensorRole.WEIGHT), "name"),
        (lambda: TensorSpec("a", (4,), TensorRole.WEIGHT, -1), "uses"),
        (lambda: Span("a", 0, repeat=0), "repeat"),
        (lambda: TensorSpec("a", (2**53 - 1,) * 400, TensorRole.WEIGHT), "400 axes"),
        (lambda: small(groups=(ChannelGroup("hidden", 1, (Span("a", 0, stacks=2**30),)),)), "too many stacks"),
        (lambda: ChannelGroup("a", 0, ()), "width"),
        (lambda: Term(-1), "coefficient"),
        (lambda: small(name=""), "name"),
    ],
)
def test_values_that_cannot_be_are_refused_by_name(make: Callable[[], object], message: str) -> None:
    with pytest.raises(EdgeFLError, match=message):
        make()


def test_a_name_that_the_wire_keeps_for_itself_is_refused() -> None:
    tensors = (TensorSpec("a#at", (4, 3), TensorRole.WEIGHT, 1), TensorSpec("b", (2, 4), TensorRole.HEAD, 1))
    with pytest.raises(MaskError, match="'#' is reserved"):
        small(tensors=tensors)
