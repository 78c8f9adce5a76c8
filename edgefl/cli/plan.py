"""`edgefl plan`: plan one round for profiled devices and predict its cost, without running it."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.cli.optional_dependencies import requires_extra
from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    from edgefl.strategies import Model, Participant, PlannedTask, RoundContext, Strategy
    from edgefl.values import DeviceProfile

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl plan --bundle exported/cnn4 pi.json phone.json
  edgefl plan --bundle exported/cnn4 --strategy perfedmask --deadline 60 'pi.json@5' 'phone.json@20'
  edgefl plan --bundle exported/cnn4 --strategy heterofl --set sent=masked_noise --plot plan.svg *.json
  edgefl plan --bundle exported/cnn4 --parameters 50000 --strategy perfedmask weak.json strong.json

A profile is a file written by `edgefl profile --out`; FILE@5 means five such devices. Seconds, memory and joules are
predicted from the profile; bytes are those of the bodies that would be sent, before compression.
"""

_MOST_DEVICES = 100_000
_LARGEST = 2**53
"""The largest whole number that every JSON reader keeps exact."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "plan",
        help="show which submodel each device would train, and its predicted cost",
        description="Plan one round for a fleet of profiled devices: the submodel that each trains, and its\n"
        "predicted time, memory, energy and traffic.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "profiles", nargs="+", metavar="PROFILE", help="a device profile; FILE@5 means five such devices"
    )
    parser.add_argument("--bundle", required=True, metavar="DIR", help="the model, a bundle written by `edgefl export`")
    parser.add_argument(
        "--strategy", default="fedavg", metavar="NAME", help="strategy, or package.module:Class (default: fedavg)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the strategy; repeatable"
    )
    _add_budget(parser.add_argument_group("limits of a round on a device"))
    _add_work(parser.add_argument_group("the round"))
    parser.add_argument("--plot", metavar="FILE", help="draw the plan to a .png, .svg or .pdf file")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def _add_budget(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--deadline", default="600", metavar="TIME", help="deadline of the round, such as '2 min' (default: 600)"
    )
    group.add_argument(
        "--share", type=float, default=0.5, metavar="F", help="fraction of the deadline for training (default: 0.5)"
    )
    group.add_argument("--memory", metavar="SIZE", help="peak memory, such as '512 MiB' (default: what is free)")
    group.add_argument("--joules", type=float, metavar="J", help="energy (default: no limit)")
    group.add_argument("--parameters", type=int, metavar="N", help="trained parameters (default: no limit)")


def _add_work(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--samples", type=int, default=600, metavar="N", help="training samples per device (default: 600)"
    )
    group.add_argument("--epochs", type=int, default=1, metavar="N", help="passes over them (default: 1)")
    group.add_argument("--batch", type=int, default=32, metavar="N", help="batch size (default: 32)")
    group.add_argument("--round", type=int, default=1, metavar="N", help="number of the round, from 1 (default: 1)")
    group.add_argument("--rounds", type=int, default=100, metavar="N", help="number of rounds in total (default: 100)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")


def run(args: argparse.Namespace) -> int:
    """Plan, print, draw."""
    with requires_extra("simulate", action="Planning"):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    from edgefl.artifacts.bundle import read_bundle
    from edgefl.artifacts.submodel import bundle_weights
    from edgefl.cli.arguments import settings
    from edgefl.strategies import RoundContext, strategy_of
    from edgefl.values import LocalWork

    _check_numbers(args)
    plot = None if args.plot is None else _plot_file(args.plot)
    strategy = strategy_of(args.strategy, settings(args.set))
    bundle = read_bundle(Path(args.bundle))
    work = LocalWork(epochs=args.epochs, batch_size=args.batch)
    round_context = RoundContext(args.round - 1, args.rounds, args.seed, work)
    fleet = _fleet(args)
    model = strategy.begin(bundle.graph, bundle_weights(bundle))
    planned = _Planned(strategy, model, fleet, round_context, dict(strategy.plan(model, fleet, round_context)))
    rows = planned.rows()
    if args.json:
        print(json.dumps({"devices": rows, "plan": planned.figures()}, indent=2))
    else:
        _print(rows, planned)
    if plot is not None:
        from edgefl.cli.plan_picture import save_picture

        save_picture(planned.planned_tasks, bundle.graph, plot, title=f"{bundle.graph.name}, {args.strategy}")
    return 0


@dataclass(frozen=True, slots=True)
class _Planned:
    """A plan and what it was made from."""

    strategy: "Strategy"
    model: "Model"
    fleet: "Sequence[Participant]"
    round_context: "RoundContext"
    planned_tasks: "dict[str, PlannedTask]"

    def rows(self) -> list[dict[str, Any]]:
        """Return each device's row, in order; None if it is left out."""
        from edgefl.strategies.transfer_sizes import download_bytes, upload_bytes

        sizes: dict[tuple[str, str, int], tuple[int, int]] = {}
        rows = []
        for participant in self.fleet:
            planned_task = self.planned_tasks.get(participant.device_id)
            if planned_task is None:
                rows.append({"device": participant.device_id, "part": None})
                continue
            key = (
                planned_task.mask.digest,
                repr(planned_task.rule),
                id(planned_task.extras) if planned_task.extras else 0,
            )
            if key not in sizes:
                sizes[key] = (
                    download_bytes(self.model, planned_task),
                    upload_bytes(self.model, planned_task, self.round_context),
                )
            rows.append(self._row(participant.device_id, planned_task, *sizes[key]))
        return rows

    def _row(self, device: str, planned_task: "PlannedTask", down: int, up: int) -> dict[str, Any]:
        graph, cost, predicted = self.model.graph, planned_task.works_on.cost, planned_task.predicted
        return {
            "device": device,
            "part": planned_task.mask.digest,
            "kept": cost.parameters / graph.parameters,
            "trained": cost.trained_parameters / graph.parameters,
            "trained_layers": [name for name in graph.trainable_layers if name in planned_task.mask.trained],
            "rule": planned_task.rule.name,
            "seconds": None if predicted is None else predicted.seconds,
            "peak_bytes": None if predicted is None else predicted.peak_bytes,
            "joules": None if predicted is None else predicted.joules,
            "down_bytes": down,
            "up_bytes": up,
        }

    def figures(self) -> dict[str, Any]:
        """Return figures of the whole plan."""
        explain = getattr(self.strategy, "explain", None)
        return {} if explain is None else dict(explain(self.model, self.fleet, self.round_context))


def _check_numbers(args: argparse.Namespace) -> None:
    """Check the ranges of numeric options."""
    most = {"samples": _LARGEST, "rounds": _LARGEST, "round": args.rounds, "seed": 2**64 - 1}
    for name, least in {"samples": 1, "rounds": 1, "round": 1, "seed": 0}.items():
        number = getattr(args, name)
        if not least <= number <= most[name]:
            raise EdgeFLError(f"--{name} is {number}", fix=f"Give a number from {least} to {most[name]}.")


def _plot_file(text: str) -> Path:
    from edgefl.data.partition_plot import plot_format

    file = Path(text)
    plot_format(file)
    return file


def _fleet(args: argparse.Namespace) -> "list[Participant]":
    from edgefl.cli.arguments import quantity
    from edgefl.federation.participants import participant_of
    from edgefl.federation.settings import BudgetCaps, FederationSettings, RoundSettings
    from edgefl.values import FieldError
    from edgefl.values.quantities import Bytes, Seconds

    memory = None if args.memory is None else int(quantity(Bytes, args.memory, "--memory"))
    try:
        settings = FederationSettings(
            name="plan",
            rounds=RoundSettings(count=args.rounds, deadline=quantity(Seconds, args.deadline, "--deadline")),
            budget=BudgetCaps(memory=memory, joules=args.joules, trainable_parameters=args.parameters),
            round_share=args.share,
        )
    except FieldError as error:
        raise EdgeFLError(error.problem, fix=error.fix) from None
    return [participant_of(settings, name, profile, samples=args.samples) for name, profile in _devices(args.profiles)]


def _devices(words: Sequence[str]) -> "list[tuple[str, DeviceProfile]]":
    """Return a name and a profile for each device."""
    from edgefl.values import read_profiles

    found: list[tuple[str, DeviceProfile]] = []
    names: set[str] = set()
    for word in words:
        path, count = _counted(word)
        if not 0 < count <= _MOST_DEVICES - len(found):
            raise EdgeFLError(
                f"{word!r} is {count} devices, after {len(found)} others",
                fix=f"Plan for 1 to {_MOST_DEVICES:,} devices in total.",
            )
        try:
            profile = read_profiles(path.read_bytes())[0]
        except OSError as error:
            raise EdgeFLError(
                f"{path} cannot be read: {error.strerror}", fix="Give a file written by `edgefl profile --out`."
            ) from None
        for number in range(1, count + 1):
            name = path.stem if count == 1 else f"{path.stem}-{number}"
            while name in names:
                name += "+"
            names.add(name)
            found.append((name, profile))
    return found


def _counted(word: str) -> tuple[Path, int]:
    path, sign, count = word.rpartition("@")
    if sign and count.isdecimal() and not Path(word).exists():
        return Path(path), int(count)
    return Path(word), 1


def _print(rows: Sequence[dict[str, Any]], planned: _Planned) -> None:
    from edgefl.cli.tables import table
    from edgefl.values.formatting import format_bytes, format_percent, format_seconds

    head = ("device", "kept", "trained", "layers", "rule", "time", "memory", "joules", "down", "up")
    lines: list[tuple[object, ...]] = []
    for row in rows:
        if row["part"] is None:
            lines.append((row["device"], "left out", *[None] * 8))
            continue
        lines.append(
            (
                row["device"],
                format_percent(row["kept"]),
                format_percent(row["trained"]),
                len(row["trained_layers"]),
                row["rule"],
                None if row["seconds"] is None else format_seconds(row["seconds"]),
                None if row["peak_bytes"] is None else format_bytes(row["peak_bytes"]),
                None if row["joules"] is None else float(f"{row['joules']:.3g}"),
                format_bytes(row["down_bytes"]),
                format_bytes(row["up_bytes"]),
            )
        )
    print(table(head, lines))
    figures = planned.figures()
    untrained = figures.get("untrained_parameters", 0)
    for name, value in figures.items():
        said = f"{value:.6g}" if isinstance(value, float) else str(value)
        if name == "bias" and untrained:
            said += f" (of what is trained; nobody trains the other {untrained:,.0f} parameters)"
        print(f"{name.replace('_', ' ')}: {said}")
