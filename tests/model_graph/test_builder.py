"""The builder refuses what it would otherwise describe wrongly."""

import pytest

from edgefl.errors import MaskError
from edgefl.model_graph import Fixed, GraphBuilder, cost_of


def test_flattened_and_dense_features_are_concatenated_in_their_own_widths() -> None:
    build = GraphBuilder("x", channels=1, positions=4)
    flat = build.flatten(build.conv("c", build.input, 2, kernel=1, positions=4))
    dense = build.linear("d", build.flatten(build.input), 3)
    build.linear("one", build.concat(flat, dense), 2)
    build.linear("two", build.concat(dense, flat), 2)
    graph = build.finish()
    assert graph.tensor["one.weight"].shape == graph.tensor["two.weight"].shape == (2, 11)
    assert [(s.offset, s.repeat) for s in graph.group["d"].spans if s.tensor == "one.weight"] == [(8, 1)]
    assert [(s.offset, s.repeat) for s in graph.group["c"].spans if s.tensor == "two.weight"] == [(3, 4)]


def test_signals_of_different_shapes_do_not_meet() -> None:
    build = GraphBuilder("x", channels=1, positions=4)
    image = build.conv("c", build.input, 8, kernel=1, positions=4)
    dense = build.linear("d", build.flatten(build.input), 8)
    with pytest.raises(MaskError, match="different shapes are added"):
        build.add(build.flatten(image), dense)
    with pytest.raises(MaskError, match="different positions"):
        build.concat(image, dense)
    with pytest.raises(MaskError, match="with 8 channels is added to 'e' with 9"):
        build.add(dense, build.linear("e", dense, 9))


def test_a_group_of_the_same_name_is_refused() -> None:
    build = GraphBuilder("x", channels=5)
    with pytest.raises(MaskError, match="'input' already"):
        build.linear("input", build.input, 8)


def test_an_addition_joins_norm_groups_and_fixed_channels() -> None:
    build = GraphBuilder("x", channels=12)
    one = build.norm("n4", build.linear("a", build.input, 12), groups=4)
    two = build.norm("n6", build.linear("b", build.input, 12), groups=6)
    build.linear("head", build.add(build.add(one, two), build.input), 2, head=True)
    graph = build.finish()
    (group,) = [group for group in graph.groups if group.name != "head"]
    assert group.multiple_of == 12
    assert group.fixed is Fixed.INPUT


def test_a_layer_that_reads_the_input_beside_another_layer_remembers_both() -> None:
    build = GraphBuilder("x", channels=5)
    hidden = build.linear("one", build.input, 4, bias=False)
    build.linear("head", build.concat(build.input, hidden), 2, bias=False, head=True)
    cost = cost_of(build.finish(), trained={"head"})
    assert cost.saved_activations == 5 + 4 + 2
    assert cost.transient_activations == 5 + 4 + 2
