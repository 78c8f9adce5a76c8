"""Inference on one sample: VGG16 whole, and with 30% of its parameters, on onnxruntime and on ExecuTorch with XNNPACK.

    python -m benchmarks.inference [MODEL] [--kept 0.3] [--engine onnx,executorch] [--rounds 40]

Channels are really removed, and widths are multiples of 16 where a layer is wide enough, which both engines' kernels
like. Two threads; every model in a process of its own, in turns.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.race import Racer, race, serve

THREADS = 2
ENGINES = {"onnx": "onnxruntime", "executorch": "ExecuTorch, XNNPACK"}


def main() -> None:
    """Print the table, or be one of its racers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="vgg16", help="a model of the zoo (default: vgg16)")
    parser.add_argument("--kept", type=float, default=0.3, help="the most parameters to keep (default: 0.3)")
    parser.add_argument("--multiple", type=int, default=16, help="widths are multiples of this (default: 16)")
    parser.add_argument("--engine", default="onnx,executorch", help="one of them, or both (default: both)")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.file:
        serve(_prediction(options.file, options.model))
        return
    engines = options.engine.split(",")
    print(f"{options.model}, one sample, {THREADS} threads, {options.rounds} turns")
    with tempfile.TemporaryDirectory() as folder:
        files, kept = _files(options.model, options.kept, options.multiple, engines, Path(folder))
        print(f"the sparse model keeps {kept:.1%} of the parameters\n")
        print(f"{'':<22}{'dense ms':>10}{'sparse ms':>11}{'faster':>9}{'by fastest':>12}{'file':>8}")
        for engine in engines:
            _compare(ENGINES[engine], *files[engine], options.model, options.rounds)


def _compare(title: str, dense: Path, sparse: Path, model: str, rounds: int) -> None:
    command = ["benchmarks.inference", model, "--file"]
    times = race({path.stem: Racer([*command, str(path)]) for path in (dense, sparse)}, rounds)
    whole, part = times[dense.stem], times[sparse.stem]
    print(
        f"{title:<22}{whole.median * 1e3:>10.2f}{part.median * 1e3:>11.2f}{whole.median / part.median:>8.2f}x"
        f"{whole.fastest / part.fastest:>11.2f}x{sparse.stat().st_size / dense.stat().st_size:>8.1%}",
        flush=True,
    )


def _files(
    model: str, kept: float, multiple: int, engines: list[str], folder: Path
) -> tuple[dict[str, tuple[Path, Path]], float]:
    """Write the dense and the sparse model for every engine."""
    from edgefl.artifacts.submodel import bundle_weights, make_submodel
    from edgefl.masks import full_mask
    from edgefl.planning import widest
    from export.bundle import make_bundle
    from export.executorch import inference_program
    from export.source import open_source

    source = open_source(model)
    bundle = make_bundle(source.model, source.name, source.example)
    weights = bundle_weights(bundle)
    limit = kept * bundle.graph.parameters
    masks = {
        "dense": full_mask(bundle.graph),
        "sparse": widest(bundle.graph, lambda cost: cost.parameters <= limit, multiple=multiple),
    }
    files = {engine: (folder / f"dense.{engine}", folder / f"sparse.{engine}") for engine in engines}
    for name, mask in masks.items():
        for engine in engines:
            if engine == "onnx":
                content = make_submodel(bundle, mask, weights).inference_model
            else:
                content = inference_program(source.model, source.example, mask, weights).pte
            (folder / f"{name}.{engine}").write_bytes(content)
    return files, masks["sparse"].cost.parameters / bundle.graph.parameters


def _prediction(path: Path, model: str) -> Callable[[], object]:
    import numpy as np

    from export.zoo import ZOO

    x = np.random.default_rng(0).standard_normal((1, *ZOO[model].input_shape)).astype(np.float32)
    if path.suffix == ".onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(path, options)
        return lambda: session.run(None, {"x": x})
    import torch  # noqa: TID251

    from export.executorch.quiet import quiet

    with quiet():
        from executorch.extension.pybindings import portable_lib  # noqa: TID251

        program, tensor = portable_lib._load_for_executorch(str(path)), torch.from_numpy(x)
        program.forward((tensor,))
    return lambda: program.forward((tensor,))


if __name__ == "__main__":
    main()
