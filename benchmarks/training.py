"""A training step (loss and all gradients) by onnxruntime on the width-symbolic graph, against PyTorch eager.

Every engine runs in a process of its own, because they slow each other down in one, and they take turns step by step.
`python -m benchmarks.training [MODEL ...]`; two threads each.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import IO

THREADS = 2
CASES = [("cnn4", 32), ("cnn4", 8), ("mlp", 32), ("mlp", 8), ("preresnet18", 32), ("mobilenet", 32), ("char_lstm", 32)]
ENGINES = ("eager", "full", "half", "head")


def main() -> None:
    """Print the table, or be one of its engines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="models of the zoo (default: all cases)")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        _serve(_step(args.engine, args.models[0], args.batch))
        return
    print(f"milliseconds a step, medians of {args.rounds} turns, {THREADS} threads; ratios to eager and to full width")
    for model, batch in CASES:
        if not args.models or model in args.models:
            _race(model, batch, args.rounds)


def _race(model: str, batch: int, rounds: int) -> None:
    racers = {engine: _Racer(engine, model, batch) for engine in ENGINES}
    times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for turn in range(rounds + 3):
        for engine, racer in racers.items():
            seconds = racer.step()
            if turn >= 3:
                times[engine].append(seconds)
    for racer in racers.values():
        racer.stop()
    median = {engine: statistics.median(values) * 1e3 for engine, values in times.items()}
    print(
        f"{model:<12} batch {batch:<3} eager {median['eager']:8.2f}   onnxruntime {median['full']:8.2f} "
        f"({median['full'] / median['eager']:.2f}x)   half width {median['half'] / median['full']:.2f}   "
        f"head alone {median['head'] / median['full']:.2f}",
        flush=True,
    )


class _Racer:
    """An engine in its own process, which makes one step when asked."""

    def __init__(self, engine: str, model: str, batch: int) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.training", model, "--engine", engine]
        self._process = subprocess.Popen(
            [*command, "--batch", str(batch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"},
        )
        self._pipe(self._process.stdout).readline()  # ready

    def step(self) -> float:
        """Make one step and return its seconds."""
        pipe = self._pipe(self._process.stdin)
        pipe.write("step\n")
        pipe.flush()
        return float(self._pipe(self._process.stdout).readline())

    def stop(self) -> None:
        """End the process."""
        self._process.communicate(timeout=30)

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None  # it was asked for
        return pipe


def _serve(step: Callable[[], object]) -> None:
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        step()
        print(time.perf_counter() - start, flush=True)


def _step(engine: str, name: str, batch: int) -> Callable[[], object]:
    """Return a function that makes one step."""
    import torch  # noqa: TID251
    from torch import nn  # noqa: TID251

    from edgefl.artifacts.submodel import make_submodel
    from edgefl.masks import freeze, full_mask, leading_channels
    from export.bundle import make_bundle
    from export.source import open_source

    torch.set_num_threads(THREADS)
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
    return _onnx_step(part.training_graph, part.weights, x.numpy(), y.numpy())


def _onnx_step(graph: bytes, weights: bytes, x: object, y: object) -> Callable[[], object]:
    import onnxruntime

    from edgefl.wire import Dense, decode

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    # Threads that spin between steps would steal the cores from whoever's turn it is; devices run without them too.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(graph, options)
    tensors = decode(weights).tensors
    feed = {"x": x, "y": y} | {n: p.array for n, p in tensors.items() if isinstance(p, Dense)}
    feed = {node.name: feed[node.name] for node in session.get_inputs()}
    return lambda: session.run(None, feed)


if __name__ == "__main__":
    main()
