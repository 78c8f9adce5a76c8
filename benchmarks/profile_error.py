"""Prediction errors of a device profile: step time and peak memory of masks that were not used in the fit.

`python -m benchmarks.profile_error [MODEL ...]`. For each model, the profiler measures with the model's own bundle.
Then random masks (random widths, random frozen layers, random batch sizes) are timed, in turns with the profiler's own
cases; their memory is measured in a fresh process each. Two predictions are judged: that of the profile, made minutes
earlier, and that of a fit to the cases that took turns with the masks, which a change in the machine's load cannot
hurt. At the end, a profile of the built-in models predicts models that it has never seen.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.profiler import ProfileRequest, measure
from device_runtime.profiler.case_selection import cases_of, fitting_batch, programs_of
from device_runtime.profiler.cases import Case, CaseProgram, work_of
from device_runtime.profiler.cost_fit import TIME_TERMS, CostSample, fitted
from device_runtime.profiler.memory import peak_in_fresh_process
from device_runtime.profiler.step_timing import TimingResult, time_cases
from edgefl.artifacts.bundle import TRAIN, Bundle, read_bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.masks import Mask, kept_width
from edgefl.planning import predict
from edgefl.values import DeviceProfile

ENGINE, THREADS = "onnx", ThreadSettings(2)
MODELS = ("cnn4", "preresnet18")
UNSEEN = ("lenet5", "vgg11", "mobilenet", "char_lstm")
MASKS = 16
SEED = 12


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="models of the zoo")
    parser.add_argument("--seconds", type=float, default=120.0, help="for timing the masks of a model")
    args = parser.parse_args()
    print(f"load average at the start: {_load()}; {THREADS.count} threads, {MASKS} masks a model", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models or MODELS:
            _judge_own(_exported(model, Path(folder)), args.seconds)
        if not args.models:
            _judge_unseen([_exported(model, Path(folder)) for model in UNSEEN], args.seconds)
    print(f"load average at the end: {_load()}")


def _judge_own(path: Path, seconds: float) -> None:
    """Judge a profile that was made with the model's own bundle."""
    profile = measure(ProfileRequest(engine=ENGINE, threads=THREADS.count, bundles=[path]))
    bundle = read_bundle(path)
    own, masks = _own_cases(bundle), _random_cases(bundle)
    timing = time_cases(open_engine(ENGINE, THREADS), [*own, *masks], seconds=seconds)
    in_turns = _refitted(profile, {case: step for case, step in timing.seconds.items() if case in own})
    steps = {case: step for case, step in timing.seconds.items() if case in masks}
    peaks = {case: _peak(case) for case in steps}
    error, memory_error = profile.cost.relative_error, profile.cost.memory_relative_error or 0.0
    print(f"\n{bundle.manifest.model}: the profile says typically within {error:.0%}, memory {memory_error:.0%}")
    print(f"  {_counted(timing)}")
    print(f"  {'batch':>5} {'MACs':>7} {'step':>10} {'profile':>10} {'in turns':>10} {'peak':>9} {'profile':>9}")
    for case, step in steps.items():
        (said, peak), (fit, _) = _predicted(profile, case), _predicted(in_turns, case)
        times = " ".join(f"{value * 1e3:>7.1f} ms" for value in (step, said, fit))
        sizes = " ".join(f"{value / 2**20:>5.0f} MiB" for value in (peaks[case], peak))
        print(f"  {case.batch:>5} {case.multiply_adds / 1e6:>6.0f}M {times} {sizes}")
    _sum_up("step time, by the profile", steps, {case: _predicted(profile, case)[0] for case in steps})
    _sum_up("step time, fitted in turns", steps, {case: _predicted(in_turns, case)[0] for case in steps})
    _sum_up("peak memory, by the profile", peaks, {case: _predicted(profile, case)[1] for case in peaks})


def _judge_unseen(paths: Sequence[Path], seconds: float) -> None:
    """Judge a profile of the built-in models by models that are not among them."""
    profile = measure(ProfileRequest(engine=ENGINE, threads=THREADS.count))
    print(f"\nbuilt-in models: the profile says typically within {profile.cost.relative_error:.0%}")
    for path in paths:
        bundle = read_bundle(path)
        steps = time_cases(open_engine(ENGINE, THREADS), _random_cases(bundle), seconds=seconds / 2).seconds
        peaks = {case: _peak(case) for case in steps}
        model = bundle.manifest.model
        _sum_up(f"step time of {model}", steps, {case: _predicted(profile, case)[0] for case in steps})
        _sum_up(f"peak memory of {model}", peaks, {case: _predicted(profile, case)[1] for case in peaks})


def _exported(model: str, folder: Path) -> Path:
    """Export a model in a process of its own: torch in this one would disturb the engine."""
    words = [sys.executable, "-W", "ignore", "-m", "edgefl", "export", "--model", model, "--no-check"]
    subprocess.run([*words, "--out", str(folder / model)], check=True, stdout=subprocess.DEVNULL)
    return folder / model


def _own_cases(bundle: Bundle) -> list[Case]:
    """Return the cases that the profiler takes."""
    programs = programs_of(bundle)
    return cases_of(bundle, programs, fitting_batch(open_engine(ENGINE, THREADS), bundle, programs, seconds=1.0))


def _random_cases(bundle: Bundle) -> list[Case]:
    """Draw masks: any width of any group, layers frozen with any probability."""
    generator = np.random.default_rng(SEED)
    whole = next(iter(programs_of(bundle).values()))
    largest = _own_cases(bundle)[0].batch
    cases = []
    for _ in range(MASKS):
        share = generator.uniform(0.2, 1.0)
        layers = tuple(layer for layer in bundle.graph.trainable_layers if generator.random() < share)
        trained = layers or tuple(bundle.graph.trainable_layers[-1:])
        kept = {g.name: range(kept_width(g, float(generator.uniform(0.1, 1)))) for g in bundle.graph.groups}
        mask = Mask.of(bundle.graph, trained=trained, kept=kept)
        program = CaseProgram(whole.model, cut_training_graph(bundle.files[TRAIN], mask), whole.sample)
        batch = int(generator.choice([largest // 2, largest, 2 * largest]))
        cases.append(Case(program, mask, batch))
    return cases


def _refitted(profile: DeviceProfile, steps: Mapping[Case, float]) -> DeviceProfile:
    """Return the profile with its times fitted to these cases."""
    times = [CostSample(case.mask.digest, work_of(case.cost, case.batch), step) for case, step in steps.items()]
    overhead, forward, backward, activation, parameter = fitted(times, TIME_TERMS)
    cost = replace(
        profile.cost,
        overhead_seconds=overhead,
        forward_seconds_per_multiply_add=forward,
        backward_seconds_per_multiply_add=backward,
        seconds_per_activation_byte=activation,
        seconds_per_trained_parameter=parameter,
    )
    return replace(profile, cost=cost)


def _predicted(profile: DeviceProfile, case: Case) -> tuple[float, float]:
    """Return the seconds and bytes that the planner would expect."""
    use = predict(profile, case.cost, batch=case.batch)
    return float(use.round_seconds or 0), float(use.peak_bytes or 0)


def _peak(case: Case) -> float:
    memory = peak_in_fresh_process(case, ENGINE, THREADS)
    if memory is None:
        raise SystemExit("a process that was to measure memory died; is there enough of it?")
    return float(memory.peak_bytes)


def _sum_up(what: str, measured: Mapping[Case, float], predicted: Mapping[Case, float]) -> None:
    errors = sorted(abs(predicted[case] / amount - 1) for case, amount in measured.items())
    median = statistics.median(errors)
    print(f"  {what}: off by {median:.1%} (median), {errors[-1]:.1%} (worst of {len(errors)})", flush=True)


def _counted(timing: TimingResult) -> str:
    turns = min(len(one.visits) for one in timing.timed)
    what = "fastest" if timing.crowded else "median"
    return f"{what} steps of {turns} turns; threads waited for a processor for {timing.waiting:.0%} of the time"


def _load() -> str:
    return " ".join(f"{load:.1f}" for load in os.getloadavg())


if __name__ == "__main__":
    main()
