"""The hypothesis strategies that make any document whatever."""

from typing import Any

from hypothesis import strategies as st

from edgefl.values import (
    LARGEST_INTEGER,
    Assignment,
    Budget,
    Capabilities,
    ClientPlan,
    ClientSoftware,
    CostFit,
    DeviceProfile,
    Energy,
    EngineSoftware,
    Enrolled,
    Enrolment,
    GraphFormat,
    Latency,
    LocalResult,
    LocalWork,
    Machine,
    Memory,
    Outcome,
    Pins,
    PowerSource,
    Prediction,
    Provenance,
    RawDtype,
    Reason,
    Receipt,
    Refusal,
    RuleSettings,
    SampleCount,
    SampleDtype,
    SampleKind,
    SampleNormalisation,
    SampleSpec,
    Scope,
    SentPayload,
    Submodel,
    SubmodelTensor,
    Telemetry,
    Thermal,
    ThermalStatus,
    Transfer,
    digest_of,
)

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
    seconds_per_activation_byte=amounts,
    seconds_per_trained_parameter=amounts,
    memory_base_bytes=counts,
    memory_bytes_per_activation_byte=amounts,
    memory_bytes_per_parameter_byte=amounts,
    memory_bytes_per_trained_parameter=amounts,
    relative_error=amounts,
    memory_relative_error=maybe(amounts),
    measurements=positive_counts,
    measured_on=maybe(names),
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
works = st.builds(LocalWork, epochs=positive_counts, batch_size=positive_counts, most_steps=maybe(positive_counts))
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
    work=works,
    rounds=positive_counts,
    mask_body=maybe(digests),
    inference=maybe(digests),
    extras=maybe(digests),
    tensors=maybe(digests),
    deadline_seconds=amounts,
    seed=st.integers(0, 2**64 - 1),
    predicted=maybe(predictions),
)
shapes = st.lists(counts, max_size=4).map(tuple)
submodels = st.builds(
    Submodel,
    tensors=st.lists(
        st.builds(
            SubmodelTensor,
            name=names,
            shape=shapes,
            dtype=identifiers,
            role=identifiers,
            layer=names,
            trained=flags,
            sent=maybe(identifiers),
        ),
        max_size=3,
        unique_by=lambda tensor: tensor.name,
    ),
    payloads=st.lists(
        st.builds(SentPayload, name=names, shape=shapes, codec=identifiers, dtype=maybe(identifiers)),
        max_size=2,
        unique_by=lambda payload: payload.name,
    ),
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
    st.builds(Thermal, start_status=st.sampled_from(ThermalStatus), end_status=maybe(st.sampled_from(ThermalStatus))),
)
telemetries = st.builds(
    Telemetry,
    latency=latencies,
    memory=memories,
    transfer=st.builds(Transfer, down_bytes=counts, up_bytes=counts, provenance=provenances),
    threads=positive_counts,
    energy=maybe(energies),
    thermal=maybe(thermals),
)
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
    telemetry=telemetries,
)
engines = st.builds(EngineSoftware, name=names, version=names, format=st.sampled_from(GraphFormat))
capabilities = st.builds(
    Capabilities,
    client=st.builds(ClientSoftware, name=names, version=names),
    platform=names,
    engines=st.lists(engines, max_size=2),
    rules=st.lists(identifiers, max_size=3),
    codecs=st.lists(identifiers, max_size=3),
    batch_sizes=maybe(st.lists(positive_counts, max_size=3)),
)
normalisations = st.builds(
    SampleNormalisation,
    mean=st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=1),  # over any std: finite in float32
    std=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=1),
    scale=st.floats(1e-6, 1e6),
)
sample_specs = st.builds(
    SampleSpec,
    shape=st.lists(st.integers(1, 10), min_size=1, max_size=8),
    dtype=st.just(SampleDtype.FLOAT32),
    kind=st.sampled_from(SampleKind),
    layout=maybe(names),
    raw_dtype=maybe(st.sampled_from(RawDtype)),
    normalisation=maybe(normalisations),
    classes=st.just(2),
    class_names=maybe(st.lists(names, min_size=2, max_size=2)),
)
enrolments = st.builds(
    Enrolment,
    enrolment_id=identifiers,
    profile=profiles,
    software=names,
    capabilities=maybe(capabilities),
    samples=maybe(counts),
)
conversations = st.one_of(
    enrolments,
    st.builds(SampleCount, samples=counts),
    st.builds(Enrolled, device_id=identifiers, token=identifiers),
    st.builds(Pins, pins=st.lists(identifiers, max_size=3).map(tuple)),
    st.builds(Assignment, retry_seconds=amounts, plan=maybe(plans), finished=flags),
    st.builds(Refusal, reason=st.sampled_from(Reason), message=names),
    st.builds(Receipt, task_id=identifiers, outcome=st.sampled_from(Outcome)),
)
documents = st.one_of(
    budgets, profiles, plans, submodels, telemetries, results, conversations, capabilities, sample_specs
)
