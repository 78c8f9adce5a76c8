"""The parser of `edgefl bench` and its subcommands."""

import argparse

from edgefl.cli.bench import coordinator, infer, plan, train, wire

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl bench infer vgg16 --keep 0.3
  edgefl bench infer --bundle exported/cnn4 --data fashion-mnist
  edgefl bench infer --file dense.onnx --file sparse.onnx --json
  edgefl bench train cnn4 --batch 32,8 --plot train.svg
  edgefl bench wire cnn4
  edgefl bench plan --devices 100,1000
  edgefl bench coordinator --devices 100 --rounds 3

Each engine runs in its own process. After a warm-up they take turns. A ratio is the ratio of the medians, with the
quartiles of the per-turn ratios. Whatever cannot run on this machine is listed with the reason; the rest still runs.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its subcommands."""
    parser = verbs.add_parser(
        "bench",
        help="benchmark models, engines, codecs, planners and the coordinator on this machine",
        description="Measure on this machine: dense and sparse models, engines and PyTorch, bits on the wire,\n"
        "planners, and a coordinator under load.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in (infer, train, wire, plan, coordinator):
        action.add_parser(actions)
