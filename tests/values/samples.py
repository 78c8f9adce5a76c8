"""One plain example of each document, and the hypothesis strategies that make any of them."""

from typing import Any

from hypothesis import strategies as st

from edgefl.values import (
    LARGEST_INTEGER,
    Budget,
    ClientPlan,
    CostFit,
    DeviceProfile,
    Energy,
    Latency,
    LocalResult,
    Machine,
    Memory,
    PayloadReference,
    PowerSource,
    Prediction,
    Provenance,
    RuleSettings,
    Scope,
    Telemetry,
    Thermal,
    Transfer,
    digest_of,
)

PROFILE = DeviceProfile(
    device_name="Küchen-Pi",
    machine=Machine(architecture="aarch64", system="Linux 6.6", cores=4),
    engine="onnxruntime 1.23.0",
    threads=4,
    cost=CostFit(
        overhead_seconds=0.002,
        forward_seconds_per_multiply_add=2e-10,
        backward_seconds_per_multiply_add=3e-10,
        memory_base_bytes=48 * 2**20,
        memory_bytes_per_activation_byte=2.5,
        relative_error=0.07,
        measurements=12,
    ),
    memory_total_bytes=4 * 2**30,
    memory_free_bytes=3 * 2**30,
    storage_free_bytes=20 * 2**30,
    measured_at="2026-01-31T12:00:00Z",
    download_bytes_per_second=2.5e6,
    upload_bytes_per_second=None,
    power=PowerSource(source="pmic", scope=Scope.DEVICE, provenance=Provenance.MEASURED, idle_watts=2.5, busy_watts=6),
    temperature_celsius=51.5,
    throttled=False,
)

BUDGET = Budget(kept_fraction=0.25, round_seconds=30, peak_bytes=512 * 2**20)

PLAN = ClientPlan(
    task_id="task-7",
    device_id="pi-4",
    round=3,
    model=digest_of(b"model"),
    mask=digest_of(b"mask"),
    graph=digest_of(b"graph"),
    rule=RuleSettings(name="sgd", settings={"momentum": 0, "learning_rate": 0.1, "nesterov": True, "mode": "a"}),
    codec="dense",
    deadline_seconds=120,
    seed=2**64 - 1,
    predicted=Prediction(seconds=20.5, peak_bytes=300 * 2**20),
)

TELEMETRY = Telemetry(
    latency=Latency(
        load_seconds=0.25,
        first_step_seconds=0.05,
        min_step_seconds=0.011,
        p50_step_seconds=0.0123,
        p90_step_seconds=0.015,
        steps_measured=40,
        round_seconds=1.5,
        source="monotonic clock",
        scope=Scope.PROCESS,
        provenance=Provenance.MEASURED,
    ),
    memory=Memory(
        baseline_bytes=40 * 2**20,
        peak_bytes=96 * 2**20,
        source="VmHWM",
        scope=Scope.PROCESS,
        provenance=Provenance.MEASURED,
    ),
    transfer=Transfer(down_bytes=1_500_000, up_bytes=60_000),
    threads=4,
    energy=Energy(
        joules=7.5,
        source="cpu seconds x 4 W",
        scope=Scope.PROCESS,
        provenance=Provenance.ESTIMATED,
        plugged=True,
    ),
    thermal=Thermal(start_celsius=45, end_celsius=51.5, throttled=False),
)

RESULT = LocalResult(
    task_id="task-7",
    device_id="pi-4",
    round=3,
    samples=600,
    steps=40,
    loss=0.75,
    accuracy=0.875,
    metrics={"proximal_loss": 0.5, "gradient_norm": 1.25},
    payload=PayloadReference(codec="dense", digest=digest_of(b"payload"), size_bytes=59_000),
    telemetry=TELEMETRY,
)

SAMPLES: dict[str, Any] = {
    "device_profile": PROFILE,
    "budget": BUDGET,
    "client_plan": PLAN,
    "telemetry": TELEMETRY,
    "local_result": RESULT,
}

# --- any value whatever ---

counts = st.integers(0, LARGEST_INTEGER)
positive_counts = st.integers(1, LARGEST_INTEGER)
amounts = st.floats(0, allow_nan=False, allow_infinity=False)
reals = st.floats(allow_nan=False, allow_infinity=False)
shares = st.floats(0, 1)
celsius = st.floats(-273.15, 1e6)
flags = st.booleans()
names = st.text(min_size=1, max_size=30).map(str.strip).filter(lambda text: text != "" and text.isprintable())
identifiers = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,30}", fullmatch=True)
digests = st.binary(max_size=8).map(digest_of)
scopes = st.sampled_from(Scope)
provenances = st.sampled_from(Provenance)
timestamps = st.datetimes().map(lambda moment: moment.isoformat(timespec="microseconds") + "Z")
settings = st.one_of(flags, st.integers(-LARGEST_INTEGER, LARGEST_INTEGER), reals, st.text(max_size=20))


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def rising(draw: st.DrawFn, strategy: st.SearchStrategy[Any], *fields: str) -> dict[str, Any]:
    """As many draws as there are fields, from the smallest to the largest."""
    drawn = sorted(draw(st.lists(strategy, min_size=len(fields), max_size=len(fields))))
    return dict(zip(fields, drawn, strict=True))


labels = {"source": names, "scope": scopes, "provenance": provenances}

machines = st.builds(Machine, architecture=names, system=names, cores=positive_counts)
cost_fits = st.builds(
    CostFit,
    overhead_seconds=amounts,
    forward_seconds_per_multiply_add=amounts,
    backward_seconds_per_multiply_add=amounts,
    memory_base_bytes=counts,
    memory_bytes_per_activation_byte=amounts,
    relative_error=amounts,
    measurements=positive_counts,
)
power_sources = st.builds(PowerSource, **labels, idle_watts=maybe(amounts), busy_watts=maybe(amounts))
profiles = rising(counts, "memory_free_bytes", "memory_total_bytes").flatmap(
    lambda memory: st.builds(
        DeviceProfile,
        **{name: st.just(size) for name, size in memory.items()},
        device_name=names,
        machine=machines,
        engine=names,
        threads=positive_counts,
        cost=cost_fits,
        storage_free_bytes=counts,
        measured_at=timestamps,
        download_bytes_per_second=maybe(amounts),
        upload_bytes_per_second=maybe(amounts),
        power=maybe(power_sources),
        temperature_celsius=maybe(celsius),
        throttled=maybe(flags),
    )
)
budgets = st.builds(
    Budget,
    trainable_parameters=maybe(counts),
    kept_fraction=maybe(shares),
    weight_density=maybe(shares),
    round_seconds=maybe(amounts),
    peak_bytes=maybe(counts),
    joules=maybe(amounts),
)
rules = st.builds(RuleSettings, name=identifiers, settings=st.dictionaries(names, settings, max_size=4))
predictions = st.builds(Prediction, seconds=maybe(amounts), peak_bytes=maybe(counts), joules=maybe(amounts))
plans = st.builds(
    ClientPlan,
    task_id=identifiers,
    device_id=identifiers,
    round=counts,
    model=digests,
    mask=digests,
    graph=maybe(digests),
    weights=maybe(digests),
    rule=rules,
    codec=names,
    deadline_seconds=amounts,
    seed=st.integers(0, 2**64 - 1),
    predicted=maybe(predictions),
)
latencies = rising(amounts, "min_step_seconds", "p50_step_seconds", "p90_step_seconds", "round_seconds").flatmap(
    lambda times: st.builds(
        Latency,
        **{name: st.just(time) for name, time in times.items()},
        load_seconds=amounts,
        first_step_seconds=amounts,
        steps_measured=positive_counts,
        **labels,
    )
)
memories = rising(counts, "baseline_bytes", "peak_bytes").flatmap(
    lambda sizes: st.builds(Memory, **{name: st.just(size) for name, size in sizes.items()}, **labels)
)
energies = st.builds(
    Energy,
    joules=amounts,
    **labels,
    sample_hertz=maybe(amounts),
    idle_watts=maybe(amounts),
    plugged=maybe(flags),
)
thermals = st.one_of(
    st.builds(Thermal, start_celsius=celsius, end_celsius=maybe(celsius), throttled=maybe(flags)),
    st.builds(Thermal, throttled=flags),
)
telemetries = st.builds(
    Telemetry,
    latency=latencies,
    memory=memories,
    transfer=st.builds(Transfer, down_bytes=counts, up_bytes=counts),
    threads=positive_counts,
    energy=maybe(energies),
    thermal=maybe(thermals),
)
payloads = st.builds(PayloadReference, codec=names, digest=digests, size_bytes=counts)
results = st.builds(
    LocalResult,
    task_id=identifiers,
    device_id=identifiers,
    round=counts,
    samples=counts,
    steps=counts,
    loss=reals,
    accuracy=maybe(shares),
    metrics=st.dictionaries(names, reals, max_size=3),
    payload=maybe(payloads),
    telemetry=telemetries,
)
documents = st.one_of(budgets, profiles, plans, telemetries, results)
