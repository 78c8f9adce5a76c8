"""A training step (loss and all gradients) by onnxruntime on the width-symbolic graph, against PyTorch eager.

Every engine runs in a process of its own, because they slow each other down in one, and they take turns step by step.
`python -m benchmarks.training [MODEL ...]`; two threads each. With `--retired` the training build of onnxruntime, which
ended with 1.19.2, races too (CNN4 and the perceptron), from an environment of its own that is made on the first run.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.race import Racer, race, serve
from benchmarks.retired_training import CHAINS, VERSION, python_with_training, retired_step, write_case

THREADS = 2
SEED = 0
CASES = [("cnn4", 32), ("cnn4", 8), ("mlp", 32), ("mlp", 8), ("preresnet18", 32), ("mobilenet", 32), ("char_lstm", 32)]
ENGINES = ("eager", "full", "half", "head")
RETIRED = "retired"
ENVIRONMENT = Path(__file__).parents[1] / ".venv-retired"


def main() -> None:
    """Print the table, or be one of its engines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="models of the zoo (default: all cases)")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--retired", action="store_true", help=f"race onnxruntime-training {VERSION} too")
    parser.add_argument("--environment", type=Path, default=ENVIRONMENT, metavar="DIR", help="where that is installed")
    parser.add_argument("--engine", choices=[*ENGINES, RETIRED], help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--case", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        serve(_step(args.engine, args.models[0], args.batch, args.case))
        return
    retired = python_with_training(args.environment) if args.retired else None
    print(f"milliseconds a step, medians of {args.rounds} turns, {THREADS} threads; ratios to eager and to full width")
    for model, batch in CASES:
        if not args.models or model in args.models:
            _race(model, batch, args.rounds, retired if model in CHAINS else None)


def _race(model: str, batch: int, rounds: int, retired: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        case = ["--case", folder] if retired else []
        command = ["benchmarks.training", model, "--batch", str(batch), *case, "--engine"]
        racers = {engine: Racer([*command, engine]) for engine in ENGINES}
        if retired:  # last: it needs the case that the full engine writes
            racers[RETIRED] = Racer([*command, RETIRED], str(retired))
        times = race(racers, rounds)
    median = {engine: found.median * 1e3 for engine, found in times.items()}
    line = (
        f"{model:<12} batch {batch:<3} eager {median['eager']:8.2f}   onnxruntime {median['full']:8.2f} "
        f"({median['full'] / median['eager']:.2f}x)   half width {median['half'] / median['full']:.2f}   "
        f"head alone {median['head'] / median['full']:.2f}"
    )
    if retired:
        line += f"   onnxruntime-training {median[RETIRED]:8.2f} ({median[RETIRED] / median['eager']:.2f}x)"
    print(line, flush=True)


def _step(engine: str, name: str, batch: int, case: Path | None) -> Callable[[], object]:
    """Return a function that makes one step. With a folder for it, the full engine writes down what it trains."""
    if engine == RETIRED:
        assert case is not None  # the race gives it
        return retired_step(case, _session_options())
    import torch  # noqa: TID251
    from torch import nn  # noqa: TID251

    from edgefl.artifacts.cut import GRADIENT
    from edgefl.artifacts.submodel import make_submodel
    from edgefl.masks import freeze, full_mask, leading_channels
    from export.bundle import make_bundle
    from export.source import open_source

    torch.set_num_threads(THREADS)
    torch.manual_seed(SEED)
    source = open_source(name)
    shape = (batch, *source.example.shape[1:])
    is_text = not source.example.is_floating_point()
    x = torch.randint(0, int(source.example.max()) + 1, shape) if is_text else torch.randn(shape)
    model = source.model.train()
    y = torch.randint(0, model(x).shape[1], (batch,))
    if engine == "eager":

        def eager() -> None:
            model.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]

        return eager
    bundle = make_bundle(source.model, name, source.example)
    mask = leading_channels(bundle.graph, 0.5) if engine == "half" else full_mask(bundle.graph)
    if engine == "head":
        mask = freeze(mask, [layer for layer in bundle.graph.trainable_layers if layer != "head"])
    part = make_submodel(bundle, mask)
    step = _onnx_step(part.training_graph, part.weights, x.numpy(), y.numpy())
    if case is not None and engine == "full":
        outputs = step()
        gradients = {name: outputs[GRADIENT + name] for name, _ in model.named_parameters()}
        write_case(case, model, x.numpy(), y.numpy(), {"loss": outputs["loss"], **gradients})
    return step


def _onnx_step(graph: bytes, weights: bytes, x: object, y: object) -> Callable[[], dict[str, Any]]:
    import onnxruntime

    from edgefl.wire import Dense, decode

    session = onnxruntime.InferenceSession(graph, _session_options())
    tensors = decode(weights).tensors
    feed = {"x": x, "y": y} | {n: p.array for n, p in tensors.items() if isinstance(p, Dense)}
    feed = {node.name: feed[node.name] for node in session.get_inputs()}
    names = [node.name for node in session.get_outputs()]
    return lambda: dict(zip(names, session.run(names, feed), strict=True))


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
