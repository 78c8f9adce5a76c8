"""The ladder of ExecuTorch programs: what compiling it takes, and the step of every rung beside onnxruntime's.

    python -m benchmarks.executorch_ladder [cnn4 preresnet18 mobilenet] [--widths 1,0.5] [--cuts block1,head]
        [--batch 32] [--minutes 30] [--rounds 8] [--threads 2] [--cache DIR]

Programs are compiled afresh unless a cache is given. The race takes the same widths, cut, weights and batch on both
engines, each in a process of its own, in turns; a race is over the cuts of one width. Both must find the same loss.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from device_runtime.profiler.cases import Sample
from edgefl.artifacts.bundle import INFER, TRAIN, Bundle, program_file, read_bundle, with_programs, write_bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.artifacts.onnx_session import open_onnx_session
from edgefl.artifacts.submodel import bundle_weights
from edgefl.bench.engine_processes import EngineProcess, run_interleaved_and_stop
from edgefl.bench.process_loop import Workload, serve_requests
from edgefl.masks import Mask, gather
from edgefl.planning.rungs import DEFAULT_WIDTHS, Ladder
from edgefl.values import SAMPLE_WEIGHTS, Program, ProgramRole, ProgramSpec
from edgefl.values.formatting import format_bytes, format_seconds

MODELS = ("cnn4", "preresnet18", "mobilenet")
ONNX, EXECUTORCH = "onnxruntime", "executorch"
WARM_UP = 2
ALIKE = 1e-3


def main() -> None:
    """Print the tables, or be one of the engines."""
    options = _options()
    if options.engine:
        serve_requests(lambda: _steps(options))
        return
    for model in options.models or MODELS:
        with tempfile.TemporaryDirectory() as name:
            bundle, ladder = _compiled(model, options, Path(options.cache or f"{name}/cache"))
            write_bundle(bundle, Path(name) / "bundle")
            for fraction, widths in ladder.widths.items():
                _race(model, ladder, fraction, _of_width(bundle, widths), Path(name) / "bundle", options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"models of the zoo (default: {' '.join(MODELS)})")
    parser.add_argument("--widths", default=",".join(f"{width:g}" for width in DEFAULT_WIDTHS))
    parser.add_argument("--cuts", help="first blocks of the cuts (default: all)")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--minutes", type=float, help="time limit of each model's compilation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", help="folder of programs compiled before")
    parser.add_argument("--engine", choices=[ONNX, EXECUTORCH], help=argparse.SUPPRESS)
    parser.add_argument("--bundle", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rung-widths", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def _compiled(model: str, options: argparse.Namespace, cache: Path) -> tuple[Bundle, Ladder]:
    """Export a model with its ladder, and print what that took."""
    from export.bundle import make_bundle
    from export.executorch.compilation import ModelArguments, compile_programs
    from export.executorch.ladder import ladder_specs
    from export.executorch.program_cache import ProgramCache
    from export.losses import Loss
    from export.model_source import open_source
    from export.zoo import block_of

    source = open_source(model)
    bundle = make_bundle(source.model, source.name, source.example, block_of=block_of)
    files = bundle.manifest.files
    ladder = Ladder(bundle.graph, files[TRAIN], files[INFER], tuple(float(each) for each in options.widths.split(",")))
    specs = ladder_specs(ladder, [options.batch], options.cuts.split(",") if options.cuts else None)
    began = time.perf_counter()
    found = compile_programs(
        ModelArguments(target=model),
        bundle.graph,
        Loss.CROSS_ENTROPY,
        specs,
        jobs=options.jobs,
        seconds=None if options.minutes is None else 60 * options.minutes,
        cache=ProgramCache(cache),
    )
    _print_compilation(model, options, ladder, found, time.perf_counter() - began)
    return with_programs(bundle, found.programs), ladder


def _print_compilation(model: str, options: argparse.Namespace, ladder: Ladder, found: Any, seconds: float) -> None:
    total = format_bytes(sum(program.size for program in found.programs))
    print(
        f"\n{model}: {len(found.programs)} programs of {total}, {len(found.failed)} failed, {len(found.left)} left; "
        f"{len(found.seconds)} compiled in {format_seconds(seconds)} by {options.jobs} processes"
    )
    print(f"{'program':<36} {'compiled in':>12} {'file':>10} {'peak memory':>12}")
    for program in found.programs:
        took = found.seconds.get(program.spec.key)
        made = "was cached" if took is None else format_seconds(took)
        sizes = f"{format_bytes(program.size):>10} {format_bytes(program.peak_bytes):>12}"
        print(f"{ladder.rung_of(program.spec):<36} {made:>12} {sizes}")
    for reason in found.failed.values():
        print(f"failed: {reason}")


def _of_width(bundle: Bundle, widths: Mapping[str, int]) -> list[Program]:
    """Return the training programs of a width, all layers first."""
    found = [p for p in bundle.manifest.programs if p.spec.role is ProgramRole.TRAIN and p.spec.widths == widths]
    return sorted(found, key=lambda program: -len(program.spec.trained))


def _race(
    model: str, ladder: Ladder, fraction: float, programs: list[Program], folder: Path, options: argparse.Namespace
) -> None:
    if not programs:
        return
    given = ["--bundle", str(folder), "--rung-widths", json.dumps(dict(ladder.widths[fraction]))]
    command = ["benchmarks.executorch_ladder", *given, "--threads", str(options.threads), "--engine"]
    processes = {name: EngineProcess([*command, name]) for name in (ONNX, EXECUTORCH)}
    losses = [process.facts["losses"] for process in processes.values()]
    for program, one, other in zip(programs, *losses, strict=True):
        if abs(one - other) > ALIKE * abs(one):
            raise SystemExit(
                f"{ladder.rung_of(program.spec)}: losses {one} and {other} differ, times would mean nothing"
            )
    # A process runs its rungs in turn, so every n-th run is of the same rung.
    count = len(programs)
    times = run_interleaved_and_stop(processes, count * options.rounds, warm_up=count * WARM_UP)
    print(f"\n{model} at {fraction:g}, {options.threads} threads, {options.rounds} turns")
    print(f"{'rung':<36} {ONNX + ' ms':>15} {EXECUTORCH + ' ms':>15} {'ratio':>7} {'of fastest':>11}")
    for place, program in enumerate(programs):
        onnx, ours = (sorted(times[name].seconds[place::count]) for name in (ONNX, EXECUTORCH))
        middle, fastest = (onnx[len(onnx) // 2], ours[len(ours) // 2]), (onnx[0], ours[0])
        row = f"{ladder.rung_of(program.spec):<36} {middle[0] * 1e3:>15.1f} {middle[1] * 1e3:>15.1f}"
        print(f"{row} {middle[1] / middle[0]:>7.2f} {fastest[1] / fastest[0]:>11.2f}", flush=True)


def _steps(options: argparse.Namespace) -> Workload:
    """Load the steps of all cuts of a width; each run does the next one."""
    bundle = read_bundle(options.bundle)
    load = _onnx_step if options.engine == ONNX else _executorch_step
    steps = [load(bundle, program, options.threads) for program in _of_width(bundle, options.rung_widths)]
    losses = [step() for step in steps]

    def forever() -> Iterator[float]:
        while True:
            for step in steps:
                yield step()

    turns = forever()
    return Workload(lambda: next(turns), {"losses": losses})


def _inputs(bundle: Bundle, spec: ProgramSpec) -> tuple[Mask, dict[str, Any]]:
    mask = Mask.of(bundle.graph, kept={name: range(width) for name, width in spec.widths.items()}, trained=spec.trained)
    manifest = bundle.manifest
    batch = Sample(tuple(manifest.input_shape), manifest.input_dtype.value, manifest.outputs).batch(spec.batch_size)
    return mask, {"x": batch.x, "y": batch.y, **gather(mask, bundle_weights(bundle))}


def _onnx_step(bundle: Bundle, program: Program, threads: int) -> Callable[[], float]:
    mask, given = _inputs(bundle, program.spec)
    session = open_onnx_session(cut_training_graph(bundle.files[TRAIN], mask), threads=threads)
    feed = {node.name: given[node.name] for node in session.get_inputs()}
    return lambda: float(session.run(None, feed)[0])


def _executorch_step(bundle: Bundle, program: Program, threads: int) -> Callable[[], float]:
    import torch  # noqa: TID251  the runtime's Python binding needs it

    from export.executorch import Runner

    torch.set_num_threads(threads)
    _, given = _inputs(bundle, program.spec)
    size = program.spec.batch_size
    alike = torch.full((size,), 1 / size)
    inputs = [alike if name == SAMPLE_WEIGHTS else torch.from_numpy(given[name].copy()) for name in program.inputs]
    runner = Runner(bundle.files[program_file(program.spec)])
    return lambda: float(runner.run(inputs)[0])


if __name__ == "__main__":
    main()
