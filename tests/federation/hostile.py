"""Profiles, telemetry and sample counts that a device may claim: valid by the schema, and as extreme as that allows."""

from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st

from edgefl.values import (
    LARGEST_INTEGER,
    CostFit,
    DeviceProfile,
    Energy,
    Latency,
    Memory,
    PowerSource,
    Provenance,
    Scope,
    Telemetry,
    Thermal,
    Transfer,
)
from tests.values.samples import PROFILE

__all__ = ["COUNTS", "NUMBERS", "profiles", "telemetries"]

NUMBERS = st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 1.0, 1e9, 1e300, 1.7976931348623157e308])
COUNTS = st.sampled_from([0, 1, 2, 1000, 2**31, 2**53 - 2, LARGEST_INTEGER])
_POSITIVE = COUNTS.map(lambda count: max(1, count))
_WHOLE = {"memory_base_bytes": COUNTS, "measurements": _POSITIVE, "measured_on": st.none()}


@st.composite
def profiles(draw: st.DrawFn) -> DeviceProfile:
    """Return a profile in which any number may be extreme."""
    cost = {one.name: getattr(PROFILE.cost, one.name) for one in fields(CostFit)}
    for name in draw(st.sets(st.sampled_from(sorted(cost)), min_size=1)):
        cost[name] = draw(_WHOLE.get(name, NUMBERS))
    total = draw(COUNTS)
    watts = st.one_of(st.none(), NUMBERS)
    power = PowerSource(
        source="claimed",
        scope=Scope.DEVICE,
        provenance=Provenance.ESTIMATED,
        idle_watts=draw(watts),
        busy_watts=draw(watts),
    )
    return replace(
        PROFILE,
        cost=CostFit(**cost),
        memory_total_bytes=total,
        memory_free_bytes=min(total, draw(COUNTS)),
        storage_free_bytes=draw(COUNTS),
        threads=draw(_POSITIVE),
        download_bytes_per_second=draw(watts),
        upload_bytes_per_second=draw(watts),
        power=draw(st.sampled_from([None, power])),
        temperature_celsius=draw(st.sampled_from([None, -273.15, 1e308])),
    )


@st.composite
def telemetries(draw: st.DrawFn) -> Telemetry:
    """Return telemetry in which any number may be extreme."""
    steps = sorted(draw(st.lists(NUMBERS, min_size=4, max_size=4)))
    memory = sorted(draw(st.lists(COUNTS, min_size=2, max_size=2)))
    about: dict[str, Any] = {"source": "claimed", "scope": Scope.PROCESS, "provenance": Provenance.ESTIMATED}
    return Telemetry(
        latency=Latency(
            load_seconds=draw(NUMBERS),
            first_step_seconds=draw(NUMBERS),
            min_step_seconds=steps[0],
            p50_step_seconds=steps[1],
            p90_step_seconds=steps[2],
            steps_measured=draw(_POSITIVE),
            round_seconds=steps[3],
            **about,
        ),
        memory=Memory(baseline_bytes=memory[0], peak_bytes=memory[1], **about),
        transfer=Transfer(down_bytes=draw(COUNTS), up_bytes=draw(COUNTS)),
        threads=draw(_POSITIVE),
        energy=draw(st.sampled_from([None, Energy(joules=draw(NUMBERS), **about)])),
        thermal=draw(st.sampled_from([None, Thermal(end_celsius=1e308), Thermal(throttled=True)])),
    )
