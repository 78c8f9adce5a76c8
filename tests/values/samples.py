"""One plain example of each document."""

from typing import Any

from edgefl.values import (
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
