"""Parity of all engines with PyTorch, for every model of the zoo and one outside it.

    python -m benchmarks.parity [MODEL ...] [--engine onnx,executorch] [--masks 3] [--steps 50] [--widths 50]

    loss, full   errors of the loss and of the gradients; the loss at full width and at all masks, the gradients at
                 full width
    masks        the largest error of the gradients over random masks: random channels of every group, and half of the
                 layers frozen, so that the graph is cut (ONNX) or the program made without them (ExecuTorch)
    own          the largest error of PyTorch's own gradients in single precision, at full width and at the masks
    walk         how far weights and running statistics are from PyTorch's after the steps of SGD, all layers trained;
                 own again for PyTorch in single precision, moved for how far PyTorch came
    widths       random masks that one session of one ONNX file served, the largest error, and PyTorch's own

Errors are relative, and measured against PyTorch in double precision: see `export.parity` for gradients,
`export.sgd_trajectory` for the walk, and `export.kink_avoidance` for how a batch is kept off the kinks of ReLU and max
pools, where no single precision can be right. Gradients must be within 1e-4 and the walk within 1e-3. A figure with a
star is not, but is at most three times PyTorch's own; one with an exclamation mark misses, and the exit code is 1.
`--plain` walks without minding kinks. ExecuTorch needs a program for every mask, which takes seconds to minutes to
export.
"""

import argparse
import sys
import time
from collections.abc import Sequence

import torch  # noqa: TID251  the benchmark is about it

from benchmarks.parity_figures import ENGINES, OUTSIDER, Figures, Plan, examine
from export.parity import TOLERANCE, Parity

# The cheap ones first.
MODELS = (
    "mlp",
    "lenet5",
    OUTSIDER,
    "cnn4",
    "cnn8",
    "resnet18",
    "vgg11",
    "mobilenet",
    "preresnet18",
    "char_lstm",
    "vgg16",
)
LEFT_OUT = {("vgg16", "executorch"): "134 million parameters"}
"""What is run only when the model is named."""
WALK_TOLERANCE = 1e-3
NEAR = 3
"""An error of so many times PyTorch's own is as near as PyTorch is."""
HEAD = (
    f"{'model':<11} {'engine':<10}  {'loss':>8} {'full':>9} {'masks':>9} {'own':>8}   {'walk':>9} {'own':>8} "
    f"{'moved':>8}   {'widths':>6} {'worst':>9} {'own':>8} {'s':>6}"
)


def main() -> int:
    """Print a line a model and engine; return 1 if a figure misses."""
    options = _options()
    torch.set_num_threads(options.threads)
    plan = Plan(options.masks, options.steps, options.widths, options.batch, options.threads, options.plain)
    print(f"batch {plan.batch}, {plan.masks} masks, {plan.steps} steps, {plan.widths} widths; against float64 PyTorch")
    print(HEAD, flush=True)
    missed, left_out = [], []
    for name in options.models or MODELS:
        engines = [engine for engine in options.engine if options.models or (name, engine) not in LEFT_OUT]
        left_out += [f"{name} on {e} ({LEFT_OUT[name, e]})" for e in options.engine if e not in engines]
        begin = time.perf_counter()

        def say(what: str, name: str = name, begin: float = begin) -> None:
            print(f"{time.perf_counter() - begin:6.0f} s  {name}: {what}", file=sys.stderr, flush=True)

        for engine, figures in examine(name, engines, plan, say).items():
            line = _line(figures)
            print(f"{name:<11} {engine:<10}  {line}", flush=True)
            if "!" in line:
                missed.append(f"{name} on {engine}")
    if left_out:
        print(f"not run: {', '.join(left_out)}; name the model to run it")
    print(f"missed: {', '.join(missed)}" if missed else "every figure holds")
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)} (default: all)")
    parser.add_argument("--engine", default=",".join(ENGINES), help="comma-separated (default: %(default)s)")
    parser.add_argument("--masks", type=int, default=3)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--widths", type=int, default=50)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plain", action="store_true", help="walk without minding kinks")
    options = parser.parse_args()
    options.engine = options.engine.split(",")
    for what, given, known in (("model", options.models, MODELS), ("engine", options.engine, ENGINES)):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"there is no {what} {unknown[0]!r}; known are {', '.join(known)}")
    return options


def _line(figures: Figures) -> str:
    """Return the figures of one engine on one model, those that miss marked with an exclamation mark."""
    assert figures.full is not None  # full width is always compared
    compared = [figures.full, *figures.masks]
    loss = max(parity.loss_error for parity in [*compared, *figures.widths])
    told = [f"{loss:8.1e}{'!' if not loss <= TOLERANCE else ''}", _gradients([figures.full]), _gradients(figures.masks)]
    told += [_own(compared), ""]
    walk = figures.walk
    told += (
        [_marked(walk.ours, walk.own, WALK_TOLERANCE), f"{walk.own:8.1e}", f"{walk.moved:8.1e}"] if walk else [" " * 27]
    )
    told += ["", f"{len(figures.widths) or '':>6}", _gradients(figures.widths), _own(figures.widths)]
    return " ".join([*told, f"{figures.seconds:6.0f}"])


def _gradients(parities: Sequence[Parity]) -> str:
    if not parities:
        return " " * 9
    # Each is judged by PyTorch's own error on the same batch.
    marks = [_marked(parity.gradient_error, parity.own_error, TOLERANCE) for parity in parities]
    worst = max(parities, key=lambda parity: parity.gradient_error)
    mark = max((text[-1] for text in marks), key=" *!".index)
    return f"{worst.gradient_error:8.1e}{mark}"


def _own(parities: Sequence[Parity]) -> str:
    return f"{max(parity.own_error for parity in parities):8.1e}" if parities else " " * 8


def _marked(error: float, own: float, tolerance: float) -> str:
    mark = " " if error <= tolerance else "*" if error <= NEAR * own else "!"
    return f"{error:8.1e}{mark}"


if __name__ == "__main__":
    sys.exit(main())
