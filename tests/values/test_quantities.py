"""Quantities: units in JSON, ranges, and what the messages say."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.values import LARGEST_INTEGER, Budget, DeviceProfile, Energy, FieldError, Machine, Thermal, from_json
from edgefl.values.units import UNITS, Dimension


def budget(**fields: object) -> Budget:
    return from_json(Budget, {"schema": "edgefl.budget/1", **fields})


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("round_seconds", "250 ms", 0.25),
        ("round_seconds", "250ms", 0.25),
        ("round_seconds", "1.5 min", 90.0),
        ("round_seconds", "2 h", 7200.0),
        ("round_seconds", ".5 s", 0.5),
        ("round_seconds", "1e3 µs", 0.001),
        ("round_seconds", "0.1 s", 0.1),
        ("peak_bytes", "512 MiB", 512 * 2**20),
        ("peak_bytes", "1.5 kB", 1500),
        ("peak_bytes", "1.1 GiB", 1181116006),
        ("joules", "3.5 Wh", 12600.0),
        ("joules", "20 mJ", 0.02),
        ("kept_fraction", "30 %", 0.3),
    ],
)
def test_a_text_with_a_unit_is_converted(field: str, text: str, expected: float) -> None:
    converted = getattr(budget(**{field: text}), field)
    assert converted == expected
    assert type(converted) is type(expected)


def test_a_data_rate_can_be_in_bits() -> None:
    assert UNITS["Mbit/s"].factor == 125_000
    assert UNITS["MiB/s"].factor == 2**20


def test_the_wrong_dimension_is_explained() -> None:
    with pytest.raises(FieldError) as caught:
        budget(round_seconds="512 MiB")
    assert str(caught.value) == (
        "field 'round_seconds' must be a time in seconds, got '512 MiB', which is a size. "
        "Write for example 30 or '30 s'"
    )


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_a_field_takes_the_units_of_its_own_dimension_only(unit: str) -> None:
    fields = {
        "round_seconds": Dimension.TIME,
        "peak_bytes": Dimension.SIZE,
        "joules": Dimension.ENERGY,
        "kept_fraction": Dimension.SHARE,
    }
    for field, dimension in fields.items():
        if UNITS[unit].dimension is dimension:
            assert getattr(budget(**{field: f"1 {unit}"}), field) > 0
        else:
            with pytest.raises(FieldError, match=f"got '1 {unit}', which is a"):
                budget(**{field: f"1 {unit}"})


@pytest.mark.parametrize(
    ("field", "wrong", "expected"),
    [
        ("peak_bytes", "512 mib", "whose unit 'mib' is unknown. Did you mean 'MiB'"),
        ("peak_bytes", "512", "got the string '512', which has no unit. Write for example 1048576 or '1 MiB'"),
        ("peak_bytes", "1.5 B", "got '1.5 B', which is not whole"),
        ("peak_bytes", 1.5, "got 1.5, which is not whole"),
        ("peak_bytes", -1, "got -1, which is below 0"),
        ("peak_bytes", LARGEST_INTEGER + 1, "which is above 9007199254740991"),
        ("peak_bytes", 10**400, "got an integer of 1329 bits, which is above 9007199254740991"),
        ("peak_bytes", -(10**400), "got an integer of 1329 bits, which is below 0"),
        ("peak_bytes", float("nan"), "got nan, which is not whole"),
        ("peak_bytes", float("inf"), "got inf, which is not whole"),
        ("round_seconds", "soon", "got 'soon', which is not a number with a unit"),
        ("round_seconds", "0" * 70 + " s", "which is not a number with a unit"),
        ("round_seconds", "1e999 s", "which is not finite"),
        ("round_seconds", "-1 s", "which is below 0"),
        ("round_seconds", 10**400, "got an integer of 1329 bits, which is not finite"),
        ("round_seconds", True, "got true, which is not a number"),
        ("round_seconds", [], "got a list of 0, which is not a number"),
        ("kept_fraction", 30, "got 30, which looks like a percentage. For 30 %, write 0.3"),
        ("kept_fraction", 1.5, "For 1.5 %, write 0.015"),
        ("kept_fraction", 300, "got 300, which is above 1"),
        ("trainable_parameters", "5 kB", "must be a count, a whole number of 0 or more, got the string '5 kB'"),
        ("trainable_parameters", False, "got false, which is not a number"),
    ],
)
def test_a_wrong_quantity_is_refused_with_advice(field: str, wrong: object, expected: str) -> None:
    with pytest.raises(FieldError) as caught:
        budget(**{field: wrong})
    assert expected in str(caught.value)
    assert caught.value.path == (field,)


@given(st.integers(0, LARGEST_INTEGER))
def test_an_exact_integer_stays_exact(count: int) -> None:
    assert budget(peak_bytes=count).peak_bytes == count
    assert budget(peak_bytes=f"{count} B").peak_bytes == count


@given(st.floats(0, 1e300))
def test_the_base_unit_in_a_text_is_the_plain_number(seconds: float) -> None:
    assert budget(round_seconds=f"{seconds!r} s").round_seconds == seconds


def test_a_float_that_is_whole_can_be_a_count() -> None:
    converted = budget(peak_bytes=3.0).peak_bytes
    assert (converted, type(converted)) == (3, int)


def test_a_temperature_may_be_negative_but_not_below_absolute_zero() -> None:
    assert Thermal(start_celsius=-20).start_celsius == -20
    with pytest.raises(FieldError, match=r"which is below -273\.15"):
        Thermal(start_celsius=-300)


def test_numpy_scalars_become_python_numbers() -> None:
    made = Budget(round_seconds=np.float32(0.5), peak_bytes=np.int64(7))  # type: ignore[arg-type]
    assert type(made.round_seconds) is float
    assert type(made.peak_bytes) is int
    with pytest.raises(FieldError, match=r"got -1.0"):
        Budget(round_seconds=np.float32(-1))  # type: ignore[arg-type]


def test_negative_zero_is_written_as_zero() -> None:
    assert str(Budget(joules=-0.0).joules) == "0.0"


def test_a_unit_text_is_for_json_and_not_for_python() -> None:
    wrong: Any = "30 s"
    with pytest.raises(FieldError, match="got '30 s', which is not a number") as caught:
        Budget(round_seconds=wrong)
    assert caught.value.fix == "Pass a plain number; strings with a unit work in JSON only"


def test_a_size_that_is_too_large_is_not_told_to_be_the_text_that_it_is() -> None:
    with pytest.raises(FieldError, match="which is above 9007199254740991") as caught:
        budget(peak_bytes="9007199254740992 B")
    assert "must be a text" not in caught.value.fix


def test_a_positive_count_is_at_least_one() -> None:
    with pytest.raises(FieldError, match="field 'cores' must be a count, a whole number of 1 or more, got 0, which is"):
        Machine(architecture="a", system="b", cores=0)


@pytest.mark.parametrize(
    ("wrong", "value", "known", "advice"),
    [
        ("round_ms", 250, "round_seconds", 'Write "round_seconds": 0.25 (that is 250 ms)'),
        ("round_minutes", 2, "round_seconds", 'Write "round_seconds": 120.0 (that is 2 min)'),
        ("peak_mb", 1.5, "peak_bytes", '"peak_bytes": 1500000 (that is 1.5 MB), or "peak_bytes": "1.5 MB"'),
        ("wh", 3.5, "joules", 'Write "joules": 12600.0'),
        ("kept_percent", 30, "kept_fraction", 'Write "kept_fraction": 0.3'),
        ("weight_density_percent", 30, "weight_density", 'Write "weight_density": 0.3'),
        ("round_ms", "soon", "round_seconds", 'Convert it and write "round_seconds"'),
        ("round_ms", -1, "round_seconds", 'Convert it and write "round_seconds"'),
        ("round_ms", True, "round_seconds", 'Convert it and write "round_seconds"'),
    ],
)
def test_a_field_in_another_unit_is_told_apart(wrong: str, value: object, known: str, advice: str) -> None:
    with pytest.raises(FieldError) as caught:
        budget(**{wrong: value})
    assert f"field '{wrong}' is not a known field; '{known}' is: " in caught.value.problem
    assert advice in caught.value.fix


def test_a_data_rate_in_another_unit_is_told_apart_too() -> None:
    with pytest.raises(FieldError) as caught:
        from_json(DeviceProfile, {"schema": "edgefl.device_profile/1", "download_mbps": 8})
    assert 'Write "download_bytes_per_second": 1000000.0 (that is 8 Mbit/s)' in caught.value.fix
    with pytest.raises(FieldError) as caught:
        from_json(DeviceProfile, {"schema": "edgefl.device_profile/1", "upload_kb_per_second": 2})
    assert 'Write "upload_bytes_per_second": 2000.0 (that is 2 kB/s)' in caught.value.fix


def test_the_advice_on_another_unit_works_when_followed() -> None:
    with pytest.raises(FieldError) as caught:
        budget(round_ms=250)
    followed = caught.value.fix.removeprefix("Write ").split(" (that is")[0]
    assert budget(**json.loads("{" + followed + "}")) == Budget(round_seconds=0.25)


def test_a_unit_suffix_of_another_dimension_is_no_match() -> None:
    with pytest.raises(FieldError, match=r"field 'round_watts' is not a known field\. Known fields: "):
        budget(round_watts=3)


def test_an_unknown_field_is_named_with_path_and_nearest_known_one() -> None:
    data = {"joules": 1, "source": "x", "scop": "device", "provenance": "measured"}
    with pytest.raises(FieldError) as caught:
        from_json(Energy, data)
    assert caught.value.problem == "field 'scop' is not a known field"
    assert "Did you mean 'scope'? Known fields: joules, source, scope," in caught.value.fix


def test_a_field_unlike_any_other_gets_the_list() -> None:
    with pytest.raises(FieldError) as caught:
        budget(zzzzzzzz=1)
    assert caught.value.fix.startswith("Known fields: trainable_parameters, kept_fraction,")
