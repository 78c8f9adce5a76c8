"""Devices read what later versions add to a document; coordinators refuse what they do not know."""

import json
from pathlib import Path
from typing import Any

import pytest

from edgefl.errors import SchemaError
from edgefl.values import Assignment, FieldError, SampleSpec, dumps, from_json, loads
from tests.values.samples import ASSIGNMENT, ENROLMENT, SAMPLE, SAMPLES

LATER = (Path(__file__).parent / "later_assignment.json").read_bytes()
"""An assignment as a later version may send it: new fields at every level."""


def test_an_assignment_of_a_later_version_is_read_without_what_is_new() -> None:
    assert loads(Assignment, LATER, tolerant=True) == ASSIGNMENT


def test_a_strict_reader_names_the_first_unknown_field() -> None:
    with pytest.raises(FieldError, match="field 'message' is not a known field"):
        loads(Assignment, LATER)


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_tolerant_reader_reads_every_document_as_a_strict_one(kind: str) -> None:
    value = SAMPLES[kind]
    assert loads(type(value), dumps(value), tolerant=True) == value


def test_unknown_fields_are_ignored_inside_lists_too() -> None:
    data: dict[str, Any] = json.loads(dumps(SAMPLES["capabilities"]))
    data["engines"][0]["threads"] = 4
    assert from_json(type(SAMPLES["capabilities"]), data, tolerant=True) == SAMPLES["capabilities"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.update(plan=7),
        lambda data: data["plan"].pop("task_id"),
        lambda data: data.update(retry_seconds="soon"),
        lambda data: data.update(schema="edgefl.assignment/2"),
        lambda data: data["plan"].update(work=[]),
    ],
)
def test_a_tolerant_reader_still_refuses_what_is_wrong(spoil: Any) -> None:
    data = json.loads(LATER)
    spoil(data)
    with pytest.raises(SchemaError):
        from_json(Assignment, data, tolerant=True)


def test_a_document_without_the_fields_that_were_added_has_the_text_of_before() -> None:
    assert "capabilities" not in dumps(ENROLMENT)


def test_names_of_python_are_ordinary_unknown_fields() -> None:
    data = json.loads(dumps(SAMPLE)) | {"__class__": "x", "__proto__": {"shape": [1]}}
    assert from_json(SampleSpec, data, tolerant=True) == SAMPLE
