"""`edgefl bench` itself: its help text, and the parsers of its actions."""

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

Engines race in processes of their own, in turns, after a warm-up; ratios are those of medians, with the quartiles of
the ratios turn by turn. What cannot run on this machine is named with the reason, and the rest runs.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb `bench` with its actions."""
    parser = verbs.add_parser(
        "bench",
        help="measure how fast, small and cheap models, engines and the service are here",
        description="Measure on this machine: dense against sparse models, engines against PyTorch, bits on the wire,\n"
        "planners, and a coordinator under load.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in (infer, train, wire, plan, coordinator):
        action.add_parser(actions)
