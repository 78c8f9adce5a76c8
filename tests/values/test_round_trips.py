"""Every value survives its own JSON text, whatever it holds."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from edgefl.values import dumps, from_json, loads, read, to_json
from tests.values.random_values import documents
from tests.values.samples import SAMPLES

quick = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@quick
@given(documents)
def test_any_document_comes_back_equal_from_its_text(value: Any) -> None:
    text = dumps(value)
    assert read(text) == value
    assert loads(type(value), text.encode()) == value
    assert from_json(type(value), to_json(value)) == value


@quick
@given(documents)
def test_equal_documents_have_equal_text_and_hash(value: Any) -> None:
    again = read(dumps(value))
    assert dumps(again) == dumps(value)
    assert hash(again) == hash(value)
    assert json.loads(dumps(again, indent=2)) == to_json(value)


@quick
@given(documents)
def test_the_types_of_scalars_survive(value: Any) -> None:
    """1 == 1.0 == True in Python, so equality alone would not notice a float that came back as an int."""
    assert repr(read(dumps(value))) == repr(value)


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_value_can_be_copied_deeply(kind: str) -> None:
    """By the same protocol that takes it to another process."""
    copied = copy.deepcopy(SAMPLES[kind])
    assert copied == SAMPLES[kind]
    assert copied is not SAMPLES[kind]


def test_the_order_of_keys_in_the_text_does_not_matter() -> None:
    backwards = dict(reversed(to_json(SAMPLES["local_result"]).items()))
    assert read(json.dumps(backwards)) == SAMPLES["local_result"]
