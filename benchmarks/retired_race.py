"""The training build of onnxruntime, retired after 1.19.2, compared as in `edgefl bench train`.

    python -m benchmarks.retired_race [MODEL ...] [--rounds 30]

CNN4 and the perceptron, batches of 32 and 8, two threads. The retired build runs in an environment of its own, which is
made on the first run (see `benchmarks.retired_training`); PyTorch and EdgeFL's engine are those of `edgefl bench`.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.retired_training import CHAINS, python_with_training, retired_step, write_case
from edgefl.bench.engine_processes import EngineProcess, run_interleaved_and_stop
from edgefl.bench.process_loop import serve_requests

THREADS = 2
BATCHES = (32, 8)
ENVIRONMENT = Path(__file__).parents[1] / ".venv-retired"


def main() -> None:
    """Print the table, or be the retired engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="models to measure (default: all)")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--environment", type=Path, default=ENVIRONMENT, metavar="DIR", help="where it is installed")
    parser.add_argument("--case", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        serve_requests(lambda: retired_step(args.case, _session_options()))
        return
    retired = python_with_training(args.environment)
    print(f"milliseconds a step, medians of {args.rounds} turns, {THREADS} threads; ratios to PyTorch eager")
    for model in args.models or CHAINS:
        for batch in BATCHES:
            _race(model, batch, args.rounds, str(retired))


def _race(name: str, batch: int, rounds: int, retired: str) -> None:
    from edgefl.bench.engine_job import command_of

    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        jobs = _prepare(name, batch, folder)
        processes = {title: EngineProcess(command_of(job, folder / f"{title}.json")) for title, job in jobs.items()}
        processes["retired"] = EngineProcess(["benchmarks.retired_race", "--case", text], retired)
        times = run_interleaved_and_stop(processes, rounds)
    eager = times["eager"].median
    found = "   ".join(f"{title} {one.median * 1e3:8.2f} ({one.median / eager:.2f}x)" for title, one in times.items())
    print(f"{name:<6} batch {batch:<3} {found}", flush=True)


def _prepare(name: str, batch: int, folder: Path) -> dict[str, Any]:
    """Write what every engine trains, and for the retired one also what EdgeFL's graph finds."""
    from dataclasses import replace

    from device_runtime.profiler.cases import Sample
    from edgefl.artifacts.bundle import GRAPH, TRAIN, WEIGHTS
    from edgefl.artifacts.cut import GRADIENT
    from edgefl.artifacts.submodel import bundle_weights
    from edgefl.bench.engine_job import PYTORCH, EngineJob
    from edgefl.masks import full_mask
    from edgefl.wire import encode_mask
    from export.bundle import make_bundle
    from export.engines import onnx_step
    from export.model_source import open_source

    source = open_source(name)
    bundle = make_bundle(source.model, name, source.example)
    manifest = bundle.manifest
    for file, content in (*bundle.files.items(), ("mask", encode_mask(full_mask(bundle.graph)))):
        (folder / file).write_bytes(content)
    ours = EngineJob(
        task="train",
        engine="onnx",
        threads=THREADS,
        batch=batch,
        model=str(folder / TRAIN),
        weights=str(folder / WEIGHTS),
        mask=str(folder / "mask"),
        graph=str(folder / GRAPH),
        shape=tuple(manifest.input_shape),
        dtype=manifest.input_dtype.value,
        outputs=manifest.outputs,
        source=name,
    )
    given = Sample(tuple(manifest.input_shape), manifest.input_dtype.value, manifest.outputs).batch(batch)
    outputs = onnx_step(bundle.files[TRAIN])({"x": given.x, "y": given.y, **bundle_weights(bundle)})
    gradients = {parameter: outputs[GRADIENT + parameter] for parameter, _ in source.model.named_parameters()}
    write_case(folder, source.model, given.x, given.y, {"loss": outputs["loss"], **gradients})
    return {"eager": replace(ours, engine=PYTORCH, model=None), "onnxruntime": ours}


def _session_options() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    # Threads that spin between steps would steal the cores from whoever's turn it is; devices run without them too.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


if __name__ == "__main__":
    main()
