"""Overhead of a local rule on the bare training step: CNN4 of FedMRN, batch 64, onnxruntime, two threads.

`python -m benchmarks.rules [RULE ...]`; every rule takes its turn after every other, step by step. Setting up a round
(`begin`) and ending it (`finish`) are timed by themselves, in bare steps.
"""

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from edgefl.artifacts.cut import GRADIENT
from edgefl.bench.timing import medians
from edgefl.local_rules import Batch, LocalRule, StepResult, TrainingInput, TrainStep, rule_of
from edgefl.local_rules.erk import erk_mask, maskable_tensors
from edgefl.masks import Weights, full_mask, gather
from edgefl.values import RuleSettings, Setting

THREADS = 2
BATCH = 64
NEW = "new:"

CASES: dict[str, tuple[str, dict[str, Setting]]] = {
    "sgd": ("sgd", {}),
    "sgd, momentum, decay": ("sgd", {"momentum": 0.9, "weight_decay": 5e-4}),
    "sgd, clipped, proximal": ("sgd", {"clip_norm": 1.0, "proximal": 0.01}),
    "fine_tune": ("fine_tune", {}),
    "channel_pruning": ("channel_pruning", {}),
    "prune_regrow, half held": ("prune_regrow", {}),
    "probabilistic_masks": ("probabilistic_masks", {"capacity": 0.5}),
    "masked_noise, binary": ("masked_noise", {}),
    "masked_noise, signed": ("masked_noise", {"masks": "signed"}),
    "compressed_sgd, eden": ("compressed_sgd", {"compressor": "eden"}),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="rules to measure (default: all)")
    parser.add_argument("--rounds", type=int, default=60)
    args = parser.parse_args()
    chosen = {label: case for label, case in CASES.items() if not args.rules or case[0] in args.rules}
    part, batch, run = _cnn4()
    rules = {label: rule_of(RuleSettings(name=name, settings=settings)) for label, (name, settings) in chosen.items()}
    parts = {label: _half_held(part) if rule.name == "prune_regrow" else part for label, rule in rules.items()}
    steps = {label: _stepper(rule, parts[label], batch, run) for label, rule in rules.items()}
    times = medians({"bare": lambda: run(part.weights, batch)} | steps, rounds=args.rounds, warm_up=5)
    bare = times.pop("bare")
    print(f"CNN4, batch {BATCH}: bare step {bare * 1e3:.1f} ms; medians of {args.rounds} turns, {THREADS} threads")
    print(f"{'rule':<26} {'step':>8} {'begin':>8} {'finish':>8}   (in bare steps)")
    for label, rule in rules.items():
        ends = medians(_ends(rule, parts[label], batch, run), rounds=9)
        line = " ".join(f"{seconds / bare:8.2f}" for seconds in (times[label], ends["begin"], ends["finish"]))
        print(f"{label:<26} {line}")


def _stepper(rule: LocalRule, part: TrainingInput, batch: Batch, run: TrainStep) -> Callable[[], object]:
    state = rule.begin(part)
    return lambda: rule.step(part, state, batch, run)


def _ends(rule: LocalRule, part: TrainingInput, batch: Batch, run: TrainStep) -> dict[str, Callable[[], object]]:
    state = rule.begin(part)
    rule.step(part, state, batch, run)
    return {"begin": lambda: rule.begin(part), "finish": lambda: rule.finish(part, state, batch, run)}


def _cnn4() -> tuple[TrainingInput, Batch, TrainStep]:
    from edgefl.artifacts.submodel import bundle_weights, make_submodel
    from export.bundle import make_bundle
    from export.model_source import open_source

    source = open_source("cnn4")
    bundle = make_bundle(source.model, "cnn4", source.example)
    mask = full_mask(bundle.graph)
    generator = np.random.default_rng(0)
    chances = {f"p/{name}": generator.random(mask.shapes[name], np.float32) for name in maskable_tensors(mask)}
    part = TrainingInput(mask, bundle_weights(bundle), seed=1, rounds=100, steps=1000, extras=chances)
    x = generator.standard_normal((BATCH, *source.example.shape[1:]), dtype=np.float32)
    return part, Batch(x, generator.integers(0, 10, BATCH)), OnnxStep(make_submodel(bundle, mask).training_graph)


def _half_held(part: TrainingInput) -> TrainingInput:
    mask = erk_mask(part.mask, 0.5, seed=1)
    return dataclasses.replace(part, mask=mask, weights=gather(mask, part.weights))


class OnnxStep:
    """A training graph on onnxruntime as a `TrainStep`."""

    def __init__(self, graph: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(graph, options)
        self._inputs = [node.name for node in self._session.get_inputs()]
        self._outputs = [node.name for node in self._session.get_outputs()]

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        """Run forward and backward."""
        feed = {"x": batch.x, "y": batch.y, **weights}
        found = self._session.run(self._outputs, {name: feed[name] for name in self._inputs})
        results: dict[str, Any] = dict(zip(self._outputs, found, strict=True))
        return StepResult(
            float(results["loss"]),
            results["correct"],
            {name.removeprefix(GRADIENT): a for name, a in results.items() if name.startswith(GRADIENT)},
            {name.removeprefix(NEW): a for name, a in results.items() if name.startswith(NEW)},
        )


if __name__ == "__main__":
    main()
