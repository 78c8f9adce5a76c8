"""rules_sgd.json, rules_fine_tune.json, rules_masked_noise.json: rules step by step, with gradients from the noise."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgefl.federation.submodel_document import submodel_document
from edgefl.local_rules import Batch, State, StepResult, TrainingInput, rule_of, trained_parameters
from edgefl.masks import Array, Mask, Weights
from edgefl.model_graph import TensorRole
from edgefl.noise import derive, symmetric, unit
from edgefl.values import RuleSettings, dumps, to_json
from edgefl.wire import Body, BodyKind, encode, encode_mask
from tests.golden.encoding import cases_text, flags_text, json_of, to_base64
from tests.golden.tiny_model import MASKS, tiny_model, tiny_weights

__all__ = ["RESULT", "RecordedStep", "fine_tune", "masked_noise", "sgd"]

SEED = 16_045_690_984_833_335_023
STEPS = 4
RESULT = (
    '{"schema":"edgefl.local_result/1","task_id":"task-7","device_id":"phone-7","round":2,"samples":100,"steps":4,'
    '"loss":0.5,"telemetry":{"latency":{"load_seconds":0.25,"first_step_seconds":0.05,"min_step_seconds":0.011,'
    '"p50_step_seconds":0.0123,"p90_step_seconds":0.015,"steps_measured":3,"round_seconds":1.5,"source":"a clock",'
    '"scope":"process","provenance":"measured"},"memory":{"baseline_bytes":1000,"peak_bytes":2000,"source":"geschätzt",'
    '"scope":"process","provenance":"estimated"},"transfer":{"down_bytes":0,"up_bytes":0},"threads":1}}'
)
"""A report, as the text that goes into the body."""


@dataclass(slots=True, eq=False)
class RecordedStep:
    """A training step whose gradients, losses and statistics come from the noise (README.md says how)."""

    mask: Mask
    seed: int
    bound: float
    calls: int = 0
    seen: dict[str, Array] = field(default_factory=dict)
    """The weights of the last call."""

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        step, self.calls = self.calls, self.calls + 1
        self.seen = {name: array.copy() for name, array in weights.items()}
        gradients = {name: self._gradient(step, name) for name in trained_parameters(self.mask)}
        statistics = {
            name: self._statistic(step, name)
            for name in self.mask.trained_tensors
            if self.mask.graph.tensor[name].role is TensorRole.STATISTIC
        }
        return StepResult(float(unit(derive(self.seed, "loss"), step, 1)[0]), np.ones(1, bool), gradients, statistics)

    def _gradient(self, step: int, name: str) -> Array:
        shape = self.mask.shapes[name]
        return symmetric(derive(self.seed, "gradient", step, name), 0, int(np.prod(shape)), self.bound).reshape(shape)

    def _statistic(self, step: int, name: str) -> Array:
        shape = self.mask.shapes[name]
        if self.mask.graph.tensor[name].dtype.startswith("int"):
            return np.full(shape, step + 1, np.int64)
        return unit(derive(self.seed, "statistic", step, name), 0, int(np.prod(shape))).reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A case: a rule with its settings on a mask, and the plan around it."""

    name: str
    settings: Mapping[str, Any]
    mask: str = "narrow"
    round: int = 2
    rounds: int = 5
    seed: int = SEED
    bound: float = 1.0


def sgd() -> str:
    """Return the text of rules_sgd.json."""
    rate = {"learning_rate": 0.1}
    momentum = {**rate, "momentum": 0.9}
    everything = {**momentum, "nesterov": True, "weight_decay": 0.0005, "proximal": 0.01, "clip_norm": 2.5}
    traces = [
        Trace(name="plain", settings=rate),
        Trace(name="the defaults", settings={}),
        Trace(name="momentum", settings=momentum),
        Trace(name="Nesterov", settings={**momentum, "nesterov": True}),
        Trace(name="weight decay", settings={**rate, "weight_decay": 0.0005}),
        Trace(name="proximal term", settings={**rate, "proximal": 0.1}),
        Trace(name="clipped", settings={**rate, "clip_norm": 1}),
        Trace(name="clipped, tensors of more than 64 entries", settings={**rate, "clip_norm": 1}, mask="whole"),
        Trace(name="clipping far above the norm", settings={**rate, "clip_norm": 1000.0}),
        Trace(name="clipped, held weights", settings={**rate, "clip_norm": 1}, mask="narrow, held"),
        Trace(name="everything", settings=everything),
        Trace(name="everything, held weights, dense", settings=everything, mask="narrow, held"),
        Trace(name="held weights, sparse", settings={**momentum, "codec": "sparse"}, mask="narrow, held"),
        Trace(name="held weights, frozen", settings={**momentum, "codec": "sparse"}, mask="narrow, frozen, held"),
        Trace(name="frozen layers", settings=momentum, mask="frozen"),
        Trace(name="nothing trained", settings=rate, mask="nothing trained"),
        Trace(name="tiny gradients", settings=everything, bound=2.0**-126),
        *_reports(momentum, everything),
        *(
            Trace(name=f"{schedule} by {by}", settings={**rate, "schedule": schedule, "schedule_by": by, **more})
            for schedule, more in (
                ("step_decay", {"decay_at": "0.4,0.5", "decay_factor": 0.3}),
                ("exponential", {"decay_factor": 0.998}),
                ("cosine", {"final_rate": 0.001}),
            )
            for by in ("round", "step")
        ),
    ]
    return _file("sgd", traces)


def _reports(plain: Mapping[str, Any], everything: Mapping[str, Any]) -> list[Trace]:
    """Return cases with `sensitivity`: every layout of channels, frozen layers, held weights, and sums without end."""
    asked = {"sensitivity": True}
    return [
        Trace(name="sensitivity", settings={**plain, **asked}),
        Trace(name="sensitivity, the whole model", settings={**everything, **asked}, mask="whole"),
        Trace(name="sensitivity, frozen layers", settings={**plain, **asked}, mask="frozen"),
        Trace(
            name="sensitivity, held weights, sparse",
            settings={**everything, **asked, "codec": "sparse"},
            mask="narrow, held",
        ),
        Trace(name="sensitivity, nothing trained", settings={**plain, **asked}, mask="nothing trained"),
        Trace(name="sensitivity, tiny gradients", settings={**plain, **asked}, bound=2.0**-60),
        Trace(name="sensitivity beyond the largest sum", settings={**plain, **asked, "clip_norm": 1}, bound=2.0**100),
    ]


def fine_tune() -> str:
    """Return the text of rules_fine_tune.json."""
    momentum = {"learning_rate": 0.05, "momentum": 0.9}
    where: Any = {"round": 5, "rounds": 5}
    traces = [
        Trace(name="train", settings=momentum, **where),
        Trace(name="freeze", settings={**momentum, "head": "freeze"}, **where),
        Trace(name="head_only", settings={**momentum, "head": "head_only"}, **where),
        Trace(name="head_only, held weights", settings={**momentum, "head": "head_only"}, mask="narrow, held", **where),
    ]
    return _file("fine_tune", traces)


def masked_noise() -> str:
    """Return the text of rules_masked_noise.json."""
    maskings = ("progressive_stochastic", "stochastic", "progressive", "deterministic")
    rate = {"learning_rate": 0.01}
    traces = [
        *(
            Trace(name=f"{masks}, {masking}", settings={**rate, "masks": masks, "masking": masking})
            for masks in ("binary", "signed")
            for masking in maskings
        ),
        Trace(
            name="momentum, decay, proximal term, clipping",
            settings={**rate, "momentum": 0.9, "weight_decay": 0.01, "proximal": 0.1, "clip_norm": 5.0},
        ),
        Trace(name="held weights, binary", settings=rate, mask="narrow, held"),
        Trace(name="held weights, signed", settings={**rate, "masks": "signed"}, mask="narrow, held"),
        Trace(
            name="held weights, signed, with everything",
            settings={
                **rate,
                "masks": "signed",
                "momentum": 0.9,
                "nesterov": True,
                "weight_decay": 0.01,
                "proximal": 0.1,
                "clip_norm": 5.0,
            },
            mask="narrow, held",
        ),
        Trace(name="another bound", settings={**rate, "bound": 0.05}),
        Trace(name="frozen layers", settings=rate, mask="frozen"),
        Trace(name="noise of zero", settings=rate, seed=ZERO_NOISE_SEED),
        Trace(name="sensitivity", settings={**rate, "sensitivity": True}),
        Trace(
            name="sensitivity, held weights, signed",
            settings={**rate, "masks": "signed", "momentum": 0.9, "sensitivity": True},
            mask="narrow, held",
        ),
    ]
    return _file("masked_noise", traces)


ZERO_NOISE_SEED = 217_281
"""A seed whose noise of one weight would be 0, and is 1e-8."""


def _file(rule: str, traces: Iterable[Trace]) -> str:
    graph, documents, known = tiny_model(), list[Any](), list(traces)
    cases = [_case(rule, trace, documents) for trace in known]
    starts = {trace.mask: _start(MASKS[trace.mask]) for trace in known}
    shared = {"model": dumps(graph), "model_digest": graph.digest, "result": RESULT}
    return cases_text(cases, **shared, starts=starts, submodels=documents)


def _start(mask: Mask) -> dict[str, Any]:
    """Return what a device downloads: the mask and the weights."""
    held = {name: flags_text(flags) for name, flags in mask.held.items()}
    return {
        "mask": mask.digest,
        "mask_body": to_base64(encode_mask(mask)),
        "held": held,
        "weights": _data(tiny_weights(mask)),
    }


def _case(rule: str, trace: Trace, documents: list[Any]) -> dict[str, Any]:
    settings = RuleSettings(name=rule, settings=trace.settings)
    chosen, mask = rule_of(settings), MASKS[trace.mask]
    where: dict[str, Any] = {"round": trace.round, "rounds": trace.rounds, "steps": STEPS}
    inputs = TrainingInput(mask, tiny_weights(mask), trace.seed, **where)
    state = chosen.begin(inputs)
    run = RecordedStep(chosen.trains(mask), derive(trace.seed, "recorded"), trace.bound)
    noise = {name: array.copy() for name, array in state.memory.items() if name.startswith("noise:")}
    steps = [_step(chosen, inputs, state, run) for _ in range(STEPS)]
    update = chosen.finish(inputs, state, Batch(np.zeros(1), np.zeros(1, np.int64)), run)
    about = {"result": RESULT, "model": mask.graph.digest, "mask": mask.digest}
    sends = {} if trace.round >= trace.rounds else chosen.sends(mask)
    document = to_json(submodel_document(chosen.trains(mask), sends))
    if document not in documents:
        documents.append(document)
    return {
        "name": trace.name,
        "rule": {"name": rule, "settings": trace.settings},
        **where,
        "seed": str(trace.seed),
        "start": trace.mask,
        "submodel": documents.index(document),
        "recorded": {"seed": str(run.seed), "bound": trace.bound},
        **({"noise": _data(noise)} if noise else {}),
        "trace": steps,
        "own": _data({name: update.weights[name] for name in chosen.trains(mask).trained_tensors}),
        "metrics": dict(update.metrics),
        "body": to_base64(encode(Body(BodyKind.UPDATE, update.tensors, seed=trace.seed, about=about))),
    }


def _step(rule: Any, inputs: TrainingInput, state: State, run: RecordedStep) -> dict[str, Any]:
    rate = rule.descent.rate(inputs, state.steps)
    result = rule.step(inputs, state, Batch(np.zeros(1), np.zeros(1, np.int64)), run)
    masked = [name.removeprefix("noise:") for name in state.memory if name.startswith("noise:")]
    after = {name: state.weights[name] for name in state.mask.trained_tensors if name not in masked}
    memory = {name: array for name, array in state.memory.items() if not name.startswith("noise:")}
    said: dict[str, Any] = {"loss": result.loss, "rate": rate}
    if masked:
        said["forward"] = _data({name: run.seen[name] for name in masked})
    return {**said, "weights": _data(after), "memory": _data(memory)}


def _data(arrays: Mapping[str, Any]) -> dict[str, str]:
    return {name: json_of(array)["data"] for name, array in arrays.items()}
