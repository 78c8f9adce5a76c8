"""The ladder of programs: its cuts, the names of its rungs, and the keys of what is compiled."""

from dataclasses import replace

import pytest

from edgefl.errors import SchemaError
from edgefl.planning import covering_cut
from edgefl.values import runs_on
from tests.device_runtime.federation import bundle
from tests.federation.catalogues import ladder_of

GRAPH = bundle().graph
LADDER = ladder_of(GRAPH)
LAYERS = GRAPH.trainable_layers


def test_the_smallest_cut_that_has_a_layer_begins_with_its_block() -> None:
    for layer in LAYERS:
        cut = covering_cut(GRAPH, [layer])
        assert GRAPH.layer[cut[0]].block == GRAPH.layer[layer].block
        assert cut == LAYERS[-len(cut) :]
    assert covering_cut(GRAPH, []) == covering_cut(GRAPH, [LAYERS[-1]])


def test_people_read_the_width_the_cut_and_the_batch_of_a_rung() -> None:
    half = LADDER.widths[0.5]
    assert LADDER.rung_of(LADDER.training_spec(half, LAYERS, 8)) == "0.5 all layers, batch 8"
    last = GRAPH.layer[LAYERS[-1]].block
    assert LADDER.rung_of(LADDER.training_spec(half, LAYERS[-1:], 8)) == f"0.5 from {last}, batch 8"
    assert LADDER.rung_of(LADDER.inference_spec(half, 8)) == "0.5 to predict, batch 8"


def test_a_rung_of_another_ladder_is_named_by_its_share_of_channels() -> None:
    spec = LADDER.inference_spec(LADDER.widths[0.5], 8)
    assert ladder_of(GRAPH, (1.0,)).rung_of(spec).startswith("about 0.")


def test_the_order_of_groups_does_not_change_a_key() -> None:
    spec = LADDER.inference_spec(LADDER.widths[0.5], 8)
    assert replace(spec, widths=dict(reversed(list(spec.widths.items())))).key == spec.key


@pytest.mark.parametrize("fractions", [(), (0.0,), (1.5,), (float("nan"),)])
def test_widths_that_are_no_fractions_are_refused(fractions: tuple[float, ...]) -> None:
    with pytest.raises(SchemaError, match="the widths of the ladder"):
        ladder_of(GRAPH, fractions)


@pytest.mark.parametrize(
    ("version", "made_with", "runs"),
    [
        ("1.4.1", "executorch 1.4.1", True),
        ("1.10.0+cpu", "executorch 1.4.1", True),
        ("1.4.0", "executorch 1.4.1", False),
        ("unknown", "executorch 1.4.1", True),
    ],
)
def test_a_runtime_runs_what_was_compiled_for_its_version_or_an_older_one(
    version: str, made_with: str, runs: bool
) -> None:
    assert runs_on(version, made_with) is runs
