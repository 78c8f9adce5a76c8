"""The JSON text of each kind, letter by letter. A change here changes the format: raise the version."""

from pathlib import Path

import pytest

from edgefl.values import dumps, kinds, read
from tests.values.samples import BUDGET, SAMPLES

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("kind", SAMPLES)
def test_the_text_of_each_kind_is_as_published(kind: str) -> None:
    published = (GOLDEN / f"{kind}.json").read_text(encoding="utf-8")
    assert dumps(SAMPLES[kind], indent=2) + "\n" == published
    assert read(published) == SAMPLES[kind]


def test_every_kind_of_this_room_has_a_golden_file() -> None:
    here = {name for name, kind in kinds().items() if kind.cls.__module__.startswith("edgefl.values.")}
    assert here == set(SAMPLES) == {path.stem for path in GOLDEN.glob("*.json")}


def test_canonical_text_has_the_tag_first_then_every_field_in_order() -> None:
    assert dumps(BUDGET) == (
        '{"schema":"edgefl.budget/1","trainable_parameters":null,"kept_fraction":0.25,"weight_density":null,'
        '"round_seconds":30.0,"peak_bytes":536870912,"joules":null}'
    )
