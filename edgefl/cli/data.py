"""`edgefl data`: list data sets, and show how one is partitioned.

The run functions import numpy and `edgefl.data`, so building the parser costs nothing.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgefl.data import Dataset, Partition

__all__ = ["add_parser"]

_EXAMPLES = """\
examples:
  edgefl data list
  edgefl data show
  edgefl data show fashion-mnist --partition dirichlet:0.3 --clients 100
  edgefl data show cifar10 --folder ~/downloads --partition labels:3 --plot clients.png
  edgefl data show mine.npz --partition owner --json

partitions (--partition):
  iid              random samples, the same number for each client
  dirichlet:ALPHA  each label is spread over the clients in proportions drawn from Dirichlet(ALPHA)
  labels:K         K labels per client
  owner            one client per owner (writer, subject, role), or several owners per client
  two-class:RATE   two classes per client, the smaller RATE times the larger, 0 < RATE <= 1;
                   the number of clients must be a multiple of the number of classes
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its subcommands `list` and `show`."""
    parser = verbs.add_parser(
        "data",
        help="list data sets, and show how one is partitioned",
        description="List the data sets that EdgeFL can read, and show how one is divided among clients.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_list(actions)
    _add_show(actions)


def _add_list(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "list",
        help="list the known data sets, where they are, and how to get them",
        description="List every known data set, where it was found, and how to get it if it is missing.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run_list)


def _add_show(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "show",
        help="show a data set and how it is divided among clients",
        description="Load a data set, divide it among clients, and show which client has which labels.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name",
        metavar="NAME|PATH",
        nargs="?",
        default="digits",
        help="a known data set, its folder or archive, or an .npz file (default: digits)",
    )
    parser.add_argument("--folder", metavar="DIR", help="folder of the named data set (default: $EDGEFL_DATA/NAME)")
    parser.add_argument("--partition", metavar="SPEC", default="iid", help="how to divide it; see below (default: iid)")
    parser.add_argument(
        "--clients",
        metavar="N",
        type=int,
        help="number of clients (default: 10; one per owner with --partition owner)",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--plot", metavar="FILE", help="also draw it to a .png, .svg or .pdf file")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run_show)


def run_list(args: argparse.Namespace) -> int:
    """Print the catalogue."""
    from edgefl.data import catalogue

    entries = catalogue()
    if args.json:
        print(
            json.dumps(
                [
                    {
                        "name": entry.name,
                        "title": entry.title,
                        "found_at": None if entry.found_at is None else str(entry.found_at),
                        "how_to_get": entry.how_to_get,
                    }
                    for entry in entries
                ],
                indent=2,
            )
        )
        return 0
    for entry in entries:
        print(f"{entry.name:<15} {entry.title}")
        print(f"{'':<15} {f'here: {entry.found_at}' if entry.found_at else f'missing. {entry.how_to_get}'}")
    print(f"{'FILE.npz':<15} your own data: arrays x and y, and optionally x_test, y_test, owners, owners_test")
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Print a data set and its partition."""
    from edgefl.data import load, parse_scheme, partition, plot_format, save_plot, text_picture
    from edgefl.data.partition_text import WIDTH

    # Check the arguments before reading a large file.
    parse_scheme(args.partition)
    if args.plot is not None:
        plot_format(Path(args.plot))
    dataset = load(args.name, args.folder)
    divided = partition(dataset.train, args.partition, clients=args.clients, seed=args.seed)
    counts = divided.label_counts(dataset.train.labels, dataset.classes)
    how = f"{divided.scheme}, {len(divided)} client{'s' if len(divided) > 1 else ''}, seed {divided.seed}"
    if args.plot is not None:
        save_plot(counts, Path(args.plot), title=f"{dataset.name}, {how}", class_names=dataset.class_names)
        print(f"wrote {args.plot}", file=sys.stderr)
    if args.json:
        print(json.dumps(_as_json(dataset, divided, counts), indent=2))
        return 0
    width = min(WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH
    print(f"{_summary(dataset)}\n{how}\n")
    print(text_picture(counts, plain=not _can_print_shades(), width=width))
    return 0


def _summary(dataset: "Dataset") -> str:
    from edgefl.values import printable

    features = dataset.train.features
    shape = "x".join(map(str, features.shape[1:]))
    lines = [
        f"{dataset.name}: {len(dataset.train)} training and {len(dataset.test)} test samples of {shape} "
        f"({features.dtype}), {dataset.classes} classes"
    ]
    if dataset.class_names is not None and dataset.class_names[:2] != ("0", "1"):
        named = ", ".join(f"{number} {name}" for number, name in enumerate(dataset.class_names[:10]))
        lines.append(f"classes: {named}{', ...' if dataset.classes > 10 else ''}")
    if dataset.owner_names is not None:
        lines.append(f"owners: {len(dataset.owner_names)}, each a {dataset.owner_kind}")
    return "\n".join(map(printable, lines))


def _as_json(dataset: "Dataset", divided: "Partition", counts: "NDArray[Any]") -> dict[str, Any]:
    scaling = dataset.normalisation
    return {
        "name": dataset.name,
        "train_samples": len(dataset.train),
        "test_samples": len(dataset.test),
        "sample_shape": list(dataset.train.features.shape[1:]),
        "dtype": str(dataset.train.features.dtype),
        "classes": dataset.classes,
        "class_names": dataset.class_names,
        "owner_kind": dataset.owner_kind,
        "owners": None if dataset.owner_names is None else len(dataset.owner_names),
        "normalisation": None
        if scaling is None
        else {"mean": scaling.mean, "std": scaling.std, "scale": scaling.scale},
        "partition": {
            "scheme": divided.scheme,
            "seed": divided.seed,
            "digest": divided.digest(),
            "clients": [{"samples": int(row.sum()), "label_counts": [int(count) for count in row]} for row in counts],
        },
    }


def _can_print_shades() -> bool:
    from edgefl.data.partition_text import SHADES

    try:
        SHADES.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
