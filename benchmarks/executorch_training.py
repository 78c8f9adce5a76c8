"""A training step on ExecuTorch: EdgeFL's program, ExecuTorch's own joint graph, and PyTorch eager, in turns.

    python -m benchmarks.executorch_training [--batch 32] [--rounds 8] [--threads 2]

The network is CNN4 with group norm in place of batch norm, which ExecuTorch's own path refuses to train. Its gradients
before a max pool are wrong (see `export.executorch.pooling`), so its time is compared, not its values. Each runs in a
process of its own: in one, their threads get in each other's way.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch  # noqa: TID251  the benchmark is about it
from torch import nn  # noqa: TID251

from edgefl.bench.engine_processes import EngineProcess, run_interleaved_and_stop
from edgefl.bench.process_loop import serve_requests
from edgefl.masks import Mask
from export.describe_graph import describe
from export.executorch import Runner, TrainingProgram, training_program
from export.executorch.quiet_output import quiet
from export.trace_model import trace_model
from export.zoo import build
from export.zoo.seeding import seeded

EAGER, OURS, THEIRS = "PyTorch eager", "EdgeFL on ExecuTorch", "ExecuTorch's own path"


def main() -> None:
    """Print the table, or be one of its engines."""
    options = _options()
    if options.engine:
        serve_requests(lambda: _step(options))
        return
    print(f"CNN4 with group norm, batch {options.batch}, {options.threads} threads, {options.rounds} turns")
    given = ["--batch", str(options.batch), "--threads", str(options.threads)]
    command = ["benchmarks.executorch_training", *given, "--engine"]
    times = run_interleaved_and_stop(
        {name: EngineProcess([*command, name]) for name in (EAGER, OURS, THEIRS)}, options.rounds, warm_up=2
    )
    print(f"{'':<22} {'median ms':>10} {'fastest ms':>11} {'median / eager':>15} {'fastest / eager':>16}")
    for name, found in times.items():
        against = found.median / times[EAGER].median, found.fastest / times[EAGER].fastest
        row = f"{name:<22} {found.median * 1e3:>10.1f} {found.fastest * 1e3:>11.1f}"
        print(f"{row} {against[0]:>15.2f} {against[1]:>16.2f}")
    faster = times[THEIRS].median / times[OURS].median, times[THEIRS].fastest / times[OURS].fastest
    print(f"\nfaster than ExecuTorch's own path: {faster[0]:.1f}x by medians, {faster[1]:.1f}x by the fastest steps")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--engine", choices=[EAGER, OURS, THEIRS], help=argparse.SUPPRESS)
    return parser.parse_args()


def _step(options: argparse.Namespace) -> Callable[[], object]:
    torch.set_num_threads(options.threads)
    with seeded(0):
        x, y = torch.randn(options.batch, 1, 28, 28), torch.randint(0, 10, (options.batch,))
    model = with_group_norm(build("cnn4")).train()
    if options.engine == EAGER:
        return eager(model, x, y)
    if options.engine == THEIRS:
        return theirs(model, x, y)
    return ours(
        training_program(model, x, Mask.of(describe(trace_model(model, x, training=True), "cnn4"))), model, x, y
    )


def with_group_norm(model: nn.Module) -> nn.Module:
    """Put a group norm of four groups in the place of every batch norm."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.BatchNorm2d):
                setattr(module, name, nn.GroupNorm(4, child.num_features))
    return model


def eager(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], object]:
    """PyTorch's step: loss and gradients, no optimiser."""

    def step() -> None:
        model.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]

    return step


def ours(program: TrainingProgram, model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], object]:
    """EdgeFL's step, checked against PyTorch first."""
    runner = Runner(program.pte)
    inputs = [x, y, torch.full((len(x),), 1 / len(x)), *(parameter.detach() for parameter in model.parameters())]
    eager(model, x, y)()
    gradients = [parameter.grad for parameter in model.parameters()]
    for name, found, expected in zip(program.outputs[2:], runner.run(inputs)[2:], gradients, strict=True):
        assert expected is not None
        error = float((found - expected).abs().max() / expected.abs().max())
        if error > 1e-4:
            raise SystemExit(f"{name} is wrong by {error:.1e}: the times would mean nothing")
    return lambda: runner.run(inputs)


class WithLoss(nn.Module):
    """What ExecuTorch's own path exports: a module that returns its loss."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss, and the predictions."""
        logits = self.model(x)
        return nn.functional.cross_entropy(logits, y), logits.detach().argmax(1)


def theirs(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], object]:
    """ExecuTorch's own way: one exported graph of the forward and the backward pass, weights inside the program."""
    with quiet():
        from executorch.exir import to_edge  # noqa: TID251
        from executorch.extension.training import (  # noqa: TID251
            _load_for_executorch_for_training_from_buffer,
        )
        from torch.export.experimental import _export_forward_backward  # noqa: TID251

        joint = _export_forward_backward(torch.export.export(WithLoss(model), (x, y), strict=True))
        pte = to_edge(joint).to_executorch().buffer
        module: Any = _load_for_executorch_for_training_from_buffer(pte)

    def step() -> object:
        assert pte  # the module points into these bytes
        return module.forward_backward("forward", (x, y))

    return step


if __name__ == "__main__":
    main()
