"""One plain example of each document."""

from dataclasses import replace
from typing import Any

from edgefl.values import (
    Assignment,
    Budget,
    Capabilities,
    ClientPlan,
    ClientSoftware,
    CostFit,
    DeviceProfile,
    DeviceProfiles,
    Energy,
    EngineSoftware,
    Enrolled,
    Enrolment,
    GraphFormat,
    Latency,
    LocalResult,
    LocalWork,
    Machine,
    Measurement,
    MeasurementCase,
    Memory,
    Outcome,
    Pins,
    PowerSource,
    Prediction,
    Program,
    ProgramRole,
    ProgramSpec,
    Provenance,
    RawDtype,
    Reason,
    Receipt,
    Refusal,
    RuleSettings,
    SampleCount,
    SampleDtype,
    SampleExample,
    SampleKind,
    SampleNormalisation,
    SampleSpec,
    Scope,
    SentPayload,
    Submodel,
    SubmodelTensor,
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
        seconds_per_activation_byte=2e-9,
        seconds_per_trained_parameter=4e-9,
        memory_base_bytes=48 * 2**20,
        memory_bytes_per_activation_byte=2.5,
        memory_bytes_per_parameter_byte=1.25,
        memory_bytes_per_trained_parameter=12.5,
        relative_error=0.07,
        memory_relative_error=0.03,
        measurements=12,
        measured_on="cnn4",
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
    deadline_seconds=120,
    work=LocalWork(epochs=2, batch_size=16),
    rounds=10,
    tensors=digest_of(b"tensors"),
    seed=2**64 - 1,
    predicted=Prediction(seconds=20.5, peak_bytes=300 * 2**20),
)

SUBMODEL = Submodel(
    tensors=(
        SubmodelTensor(
            name="conv1.weight",
            shape=(16, 1, 3, 3),
            dtype="float32",
            role="weight",
            layer="conv1",
            trained=True,
            sent="bits",
        ),
        SubmodelTensor(
            name="norm1.num_batches_tracked",
            shape=(),
            dtype="int64",
            role="statistic",
            layer="norm1",
            trained=False,
            sent=None,
        ),
    ),
    payloads=(SentPayload(name="conv1.weight:scale", shape=(1,), codec="dense", dtype="float32"),),
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
    telemetry=TELEMETRY,
)

ENROLMENT = Enrolment(enrolment_id="f00d", profile=PROFILE, software="edgefl 0.1.0", name="kitchen-pi")
SAMPLE_COUNT = SampleCount(samples=480)
CAPABILITIES = Capabilities(
    client=ClientSoftware(name="edgefl-java", version="0.1.0"),
    platform="Android 15",
    engines=(EngineSoftware(name="onnxruntime", version="1.31.1", format=GraphFormat.ONNX),),
    rules=("sgd", "fine_tune", "masked_noise"),
    codecs=("dense", "bits"),
    batch_sizes=None,
)
SAMPLE = SampleSpec(
    shape=(1, 2, 2),
    dtype=SampleDtype.FLOAT32,
    kind=SampleKind.IMAGE,
    layout="CHW",
    raw_dtype=RawDtype.UINT8,
    normalisation=SampleNormalisation(mean=(0.5,), std=(0.25,), scale=255),
    classes=3,
    class_names=("Katze", "chien", "犬"),
    example=SampleExample(raw="AEB//w==", label=2, x="AAAAwP7+fr8AgAC8AAAAQA=="),
)
ENROLLED = Enrolled(device_id="pi-4", token="s3cret")
PINS = Pins(pins=("sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",))
ASSIGNMENT = Assignment(retry_seconds=2.5, plan=PLAN)
REFUSAL = Refusal(reason=Reason.TEMPERATURE, message="81.5 degrees, and 75 are allowed")
RECEIPT = Receipt(task_id="task-7", outcome=Outcome.ALREADY, retry_seconds=2.5)

MEASUREMENT = Measurement(
    model="cnn4",
    cases=(
        MeasurementCase(
            width=0.3,
            batch_size=8,
            graph=digest_of(b"graph"),
            weights=digest_of(b"weights"),
            submodel=digest_of(b"submodel"),
            forward_multiply_adds=7_808_136,
            backward_multiply_adds=15_051_792,
            activation_bytes=1_430_784,
            parameter_bytes=143_944,
            trained_parameters=35_690,
        ),
    ),
)

PROGRAM = Program(
    spec=ProgramSpec(
        role=ProgramRole.TRAIN,
        model=digest_of(b"model"),
        graph=digest_of(b"graph"),
        widths={"block1": 16, "block2": 32},
        trained=("block2.conv", "head"),
        batch_size=32,
    ),
    inputs=("x", "y", "sample_weights", "block1.conv.weight", "block2.conv.weight", "head.weight"),
    outputs=("loss", "correct", "grad:block2.conv.weight", "grad:head.weight"),
    pte=digest_of(b"program"),
    size=114_984,
    peak_bytes=5_212_160,
    made_with="executorch 1.4.1",
)

PROFILES = DeviceProfiles(profiles=(PROFILE, replace(PROFILE, engine="executorch 1.4.1")))

SAMPLES: dict[str, Any] = {
    "device_profile": PROFILE,
    "budget": BUDGET,
    "client_plan": PLAN,
    "submodel": SUBMODEL,
    "telemetry": TELEMETRY,
    "local_result": RESULT,
    "enrolment": ENROLMENT,
    "sample_count": SAMPLE_COUNT,
    "enrolled": ENROLLED,
    "pins": PINS,
    "assignment": ASSIGNMENT,
    "capabilities": CAPABILITIES,
    "sample": SAMPLE,
    "refusal": REFUSAL,
    "receipt": RECEIPT,
    "measurement": MEASUREMENT,
    "program": PROGRAM,
    "device_profiles": PROFILES,
}
