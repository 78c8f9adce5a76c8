"""The faster engine is chosen, if it fits and if it is worth it."""

from dataclasses import replace

import pytest

from device_runtime.profiler.engine_choice import built_in_work, choose_engine
from edgefl.errors import SchemaError
from edgefl.values import CostFit, DeviceProfile, DeviceProfiles, dump_profiles, dumps, engine_package, read_profiles
from tests.values.samples import BUDGET, PROFILE

STEP = {
    "forward_multiply_adds": 1000,
    "backward_multiply_adds": 2000,
    "activation_bytes": 10_000,
    "parameter_bytes": 400,
    "trained_parameters": 100,
}


def profile(engine: str, milliseconds: float, base_bytes: int = 1000) -> DeviceProfile:
    """A device whose steps all take the same time."""
    cost = CostFit(
        overhead_seconds=milliseconds / 1e3,
        forward_seconds_per_multiply_add=0.0,
        backward_seconds_per_multiply_add=0.0,
        memory_base_bytes=base_bytes,
        memory_bytes_per_activation_byte=0.0,
        relative_error=0.1,
        measurements=5,
    )
    return replace(PROFILE, engine=engine, cost=cost)


def both(onnx: float, executorch: float, **changes: int) -> dict[str, DeviceProfile]:
    return {
        "onnx": profile("onnxruntime 1.31.1", onnx),
        "executorch": profile("executorch 1.4.1", executorch, **changes),
    }


@pytest.mark.parametrize(("executorch", "chosen"), [(31, "onnx"), (12, "onnx"), (11.5, "onnx"), (10, "executorch")])
def test_ten_percent_must_speak_for_leaving_onnxruntime(executorch: float, chosen: str) -> None:
    assert choose_engine(both(12, executorch), [STEP]).engine == chosen


def test_the_choice_says_why_in_one_line() -> None:
    why = choose_engine(both(12, 31), [STEP]).why
    assert why == "onnxruntime: 12 ms a step, executorch: 31 ms a step; taking onnxruntime"


def test_an_engine_that_does_not_fit_the_memory_is_not_taken() -> None:
    found = choose_engine(both(12, 5, base_bytes=PROFILE.memory_free_bytes + 1), [STEP])
    assert found.engine == "onnx"
    assert "executorch: 5 ms a step, more memory than is free" in found.why


def test_of_engines_that_do_not_fit_the_faster_one_is_taken() -> None:
    much = PROFILE.memory_free_bytes + 1
    found = {"onnx": profile("onnxruntime 1", 12, much), "executorch": profile("executorch 1", 5, much)}
    assert choose_engine(found, [STEP]).engine == "executorch"


def test_a_single_engine_is_taken_as_it_is() -> None:
    found = choose_engine({"executorch": profile("executorch 1.4.1", 5)}, built_in_work())
    assert (found.engine, found.why) == ("executorch", "executorch is the only engine here with a profile")


def test_one_profile_in_a_file_is_a_plain_one_and_several_are_read_back() -> None:
    one, other = both(12, 31).values()
    assert dump_profiles((one,)) == dumps(one, indent=2) + "\n"
    for profiles in ((one,), (one, other)):
        assert read_profiles(dump_profiles(profiles).encode()) == profiles
    assert [engine_package(found) for found in (one, other)] == ["onnxruntime", "executorch"]


def test_two_profiles_of_one_engine_in_a_file_are_refused() -> None:
    one = profile("onnxruntime 1.31.1", 12)
    with pytest.raises(SchemaError, match="onnxruntime, onnxruntime"):
        DeviceProfiles(profiles=(one, replace(one, engine="onnxruntime 1.30")))
    with pytest.raises(SchemaError, match="device_profile"):
        read_profiles(dumps(BUDGET).encode())
