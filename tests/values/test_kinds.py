"""What other rooms build from this one: kinds of documents, refined hints, mappings that cannot change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import pytest

from edgefl.errors import SchemaError
from edgefl.values import (
    Budget,
    Count,
    Dimension,
    FieldError,
    FrozenMapping,
    Quantity,
    Seconds,
    check_fields,
    document,
    dumps,
    from_json,
    kinds,
    read,
    schema,
    to_json,
)
from tests.values.samples import BUDGET


@pytest.fixture
def private_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten afterwards."""
    monkeypatch.setattr(schema, "_kinds", dict(schema._kinds))


@pytest.mark.usefixtures("private_kinds")
def test_an_older_version_is_refused() -> None:
    document("budget", version=2)(Budget)
    with pytest.raises(SchemaError, match="made by an older EdgeFL"):
        read('{"schema": "edgefl.budget/1"}')
    assert read(dumps(BUDGET)) == BUDGET


@pytest.mark.usefixtures("private_kinds")
def test_another_room_can_register_a_kind() -> None:
    @dataclass(frozen=True, slots=True)
    class Layer:
        sizes: tuple[Count, ...]

        def __post_init__(self) -> None:
            check_fields(self)

    @document("test_graph", version=3)
    @dataclass(frozen=True, slots=True)
    class Graph:
        layers: Mapping[str, Layer]
        order: tuple[Layer, ...] = ()

        def __post_init__(self) -> None:
            check_fields(self)

    graph = Graph(layers={"b": Layer((2, 3)), "a": Layer(())}, order=(Layer((1,)),))
    assert dumps(graph) == (
        '{"schema":"edgefl.test_graph/3","layers":{"a":{"sizes":[]},"b":{"sizes":[2,3]}},"order":[{"sizes":[1]}]}'
    )
    assert read(dumps(graph)) == graph
    with pytest.raises(FieldError) as caught:
        read('{"schema":"edgefl.test_graph/3","layers":{},"order":[{"sizes":[1, -1]}]}')
    assert "field 'order[0].sizes[1]' " in caught.value.problem


@pytest.mark.usefixtures("private_kinds")
def test_a_kind_cannot_be_claimed_twice() -> None:
    @dataclass(frozen=True)
    class Other:
        size: int

    with pytest.raises(TypeError, match="two classes claim to be the document 'budget'"):
        document("budget", version=1)(Other)
    assert kinds()["budget"].cls is Budget


@pytest.mark.usefixtures("private_kinds")
def test_a_kind_needs_a_plain_name_and_leaves_room_for_the_tag() -> None:
    @dataclass(frozen=True)
    class Tagged:
        schema: str

    with pytest.raises(TypeError, match="has a field named schema"):
        document("tagged", version=1)(Tagged)
    with pytest.raises(TypeError, match="cannot be the document 'Bad name'"):
        document("Bad name", version=1)(Tagged)
    assert not {"tagged", "Bad name"} & set(kinds())


def test_the_outermost_annotation_of_a_hint_wins() -> None:
    refined = Annotated[Seconds, Quantity(Dimension.TIME, "a short time in seconds", "1", high=2)]

    @dataclass(frozen=True)
    class Blink:
        length_seconds: refined

    with pytest.raises(FieldError, match="must be a short time in seconds, got 3, which is above 2"):
        from_json(Blink, {"length_seconds": 3})


def test_a_hint_without_a_json_form_is_a_bug_and_not_an_input_error() -> None:
    @dataclass(frozen=True)
    class Odd:
        things: set[int]

    with pytest.raises(TypeError, match="no JSON form"):
        to_json(Odd({1}))


def test_a_frozen_mapping_cannot_change_and_equals_any_equal_mapping() -> None:
    mapping = FrozenMapping({"b": 2, "a": 1})
    assert list(mapping) == ["a", "b"]
    assert mapping == {"a": 1, "b": 2}
    assert hash(mapping) == hash(FrozenMapping({"a": 1, "b": 2}))
    with pytest.raises(TypeError):
        mapping["a"] = 2  # type: ignore[index]
    with pytest.raises(AttributeError):
        mapping._items = {}
    with pytest.raises(AttributeError):
        del mapping._items
