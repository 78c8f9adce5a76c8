"""`edgefl simulate`: simulate a fleet on this machine or a Ray cluster, with real training and simulated time."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from edgefl.cli.optional_dependencies import requires_extra
from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgefl.artifacts.bundle import Bundle
    from edgefl.cli.simulate_progress import SimulationProgress
    from edgefl.simulation.executor import Executor
    from edgefl.simulation.request import SimulationInputs, SimulationRequest
    from edgefl.simulation.run_folder import RunFolder
    from edgefl.simulation.summary import Summary
    from edgefl.strategies import Strategy

__all__ = ["add_parser"]

Value = TypeVar("Value")
_ROUNDS = 10
_MOST_ROUNDS = 1000
"""Rounds, if a limit of cost is to end the run and no number is given."""

_EPILOG = """\
examples:
  edgefl simulate
  edgefl simulate --strategy hermes --set kept_target=0.3 --rounds 20 --out runs/hermes
  edgefl simulate --fleet pi3:1,pi4:3 --deadline "24 s" --rounds 20 --strategy perfedmask --set fine_tune_rate=0.01
  edgefl simulate --model cnn4 --data fashion-mnist --devices 100 --per-round 10 --partition labels:3
  edgefl simulate --strategy heterofl --set schedule=constant --until "20 s" --until "500 J"
  edgefl simulate --fleet my-fleet.toml --trace seen.csv --seed 7 --out runs/field
  edgefl simulate --over http --devices 5
  edgefl simulate --engine ray --ray-address auto --model cnn4 --data fashion-mnist --devices 10000 --per-round 100

Training is real: every device's submodel is trained on its own samples. Time, memory and energy are simulated by device
class. The same request gives the same model, whichever engine runs it.

fleets (--fleet): mixed, pis, phones; or classes with their shares, of
  pi3, pi4, pi5, phone-low, phone-mid, phone-high; or a .toml file with one [[class]] for each kind:
    [[class]]
    name = "kitchen"
    like = "pi4"                 # other fields as in pi4
    share = 2
    memory_bytes = "512 MiB"
    online_seconds = "2 h"       # comes and goes
    offline_seconds = "30 min"
    fails = 0.05                 # fraction of tasks that return nothing
phones that charge at night (--availability): nightly, or with settings, such as nightly:spread=10h,skips=0.3
  spread (between the time zones, 0 h), bedtime (after noon, 11 h), hours (online per night, 7 h),
  skips (share of nights without a charger, 0.15), interrupted (share of nights that are cut in two, 0.1)
traces (--trace): a CSV file of device,from_seconds,to_seconds with the times each device is available.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "simulate",
        help="simulate a fleet: real training, simulated time",
        description="Run a federation of simulated devices, and write the run to a folder for `edgefl report` and\n"
        "`edgefl compare`. Needs the extra 'simulate', also 'coordinator' with --over http, and 'export' for models\n"
        "that are not exported yet.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_model(parser.add_argument_group("model and data"))
    _add_fleet(parser.add_argument_group("the fleet"))
    _add_rounds(parser.add_argument_group("the federation"))
    _add_engine(parser.add_argument_group("execution"))
    parser.add_argument("--out", metavar="DIR", help="run folder (default: runs/STRATEGY, with a number if it exists)")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON on stdout")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run)


def _add_model(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--model",
        default="digits_cnn",
        metavar="NAME",
        help="digits_cnn or digits_mlp, which are built in; a bundle of `edgefl export`; a zoo model; or "
        "package.module:factory (default: digits_cnn)",
    )
    group.add_argument(
        "--widen",
        type=float,
        metavar="F",
        help="make the model this many times as wide first, for networks side by side",
    )
    group.add_argument("--input", metavar="SHAPE", help="shape of one sample of your own model, such as 3,32,32")
    group.add_argument("--classes", type=int, metavar="N", help="number of classes of a zoo model (default: its own)")
    group.add_argument(
        "--data", default="digits", metavar="NAME|PATH", help="data set, see `edgefl data list` (default: digits)"
    )
    group.add_argument("--folder", metavar="DIR", help="folder of the named data set (default: $EDGEFL_DATA/NAME)")
    group.add_argument("--samples", type=int, metavar="N", help="number of training samples to use (default: all)")
    group.add_argument("--test-samples", type=int, metavar="N", help="number of test samples to use (default: all)")
    group.add_argument(
        "--partition",
        default="dirichlet:0.3",
        metavar="SPEC",
        help="how the data is divided, see `edgefl data show --help` (default: dirichlet:0.3)",
    )


def _add_fleet(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--devices", type=int, default=8, metavar="N", help="number of devices (default: 8)")
    group.add_argument("--fleet", default="mixed", metavar="SPEC", help="device classes, see below (default: mixed)")
    group.add_argument("--trace", metavar="FILE", help="when each device is available (default: by its class)")
    group.add_argument(
        "--availability",
        metavar="SPEC",
        help="when devices are available: nightly, see below (default: by their class)",
    )
    group.add_argument(
        "--resume", action="store_true", help="a device that goes offline continues its task when it is back"
    )


def _add_rounds(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--strategy", default="fedavg", metavar="NAME", help="strategy, or package.module:Class (default: fedavg)"
    )
    group.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the strategy; repeatable"
    )
    group.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help=f"number of rounds, over which schedules are spread (default: {_ROUNDS}; with --until, {_MOST_ROUNDS})",
    )
    group.add_argument(
        "--per-round", type=int, metavar="N", help="devices selected per round (default: all, at most 10)"
    )
    group.add_argument(
        "--over-select", type=float, default=1.0, metavar="F", help="select this many times more devices (default: 1)"
    )
    group.add_argument("--wait-for", type=int, metavar="N", help="fewest devices to open a round with (default: 1)")
    group.add_argument(
        "--available-within",
        default="90",
        metavar="TIME",
        help="with --resume: devices seen this long ago are selected too (default: 90)",
    )
    group.add_argument(
        "--mode", choices=["rounds", "buffered"], default="rounds", help="buffered: asynchronous (default: rounds)"
    )
    group.add_argument("--buffer", type=int, default=10, metavar="N", help="updates that make a model (default: 10)")
    group.add_argument("--at-once", type=int, default=20, metavar="N", help="devices at work at once (default: 20)")
    group.add_argument("--epochs", type=int, default=5, metavar="N", help="passes over a device's data (default: 5)")
    group.add_argument("--batch", type=int, default=16, metavar="N", help="batch size (default: 16)")
    group.add_argument(
        "--most-steps", type=int, metavar="N", help="most steps of a device per round (default: no limit)"
    )
    group.add_argument(
        "--deadline", default="600", metavar="TIME", help="deadline of a round, such as '20 s' (default: 600)"
    )
    group.add_argument(
        "--share", type=float, default=0.5, metavar="F", help="fraction of the deadline for training (default: 0.5)"
    )
    group.add_argument("--budget-seconds", metavar="TIME", help="most predicted training of a task (default: no limit)")
    group.add_argument(
        "--until",
        action="append",
        default=[],
        metavar="COST",
        help="end when this is spent: '20 s' (simulated), '500 J', '10 MiB up', '10 MiB down' or '20 MiB' (both); "
        "repeatable (default: the last round)",
    )
    group.add_argument("--stop-after", metavar="TIME", help="deprecated: the same as --until TIME")
    group.add_argument(
        "--evaluate-every",
        type=int,
        default=1,
        metavar="N",
        help="evaluate every N rounds; 0: only the last (default: 1)",
    )
    group.add_argument("--no-personal", action="store_true", help="skip personalisation and its evaluation at the end")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")


def _add_engine(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--over", choices=["process", "http"], default="process", help="http: a real coordinator and real agents"
    )
    group.add_argument(
        "--engine", choices=["local", "ray"], default="local", help="ray: workers on a Ray cluster (extra 'ray')"
    )
    group.add_argument(
        "--ray-address", metavar="ADDRESS", help="address of the cluster (default: start one on this machine)"
    )
    group.add_argument(
        "--workers", type=int, metavar="N", help="worker processes (default: one per core, all of a cluster)"
    )


def run(args: argparse.Namespace) -> int:
    """Simulate, and print the summary."""
    with requires_extra("simulate", action="Simulating"):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    from edgefl.cli.simulate_progress import SimulationProgress, summary_lines
    from edgefl.simulation.model_source import bundle_of
    from edgefl.simulation.request import simulation_inputs
    from edgefl.simulation.run_folder import RunFolder
    from edgefl.values import dumps

    request = _request(args)
    if args.workers is not None and args.workers < 1:
        raise EdgeFLError(f"--workers is {args.workers}", fix="Give a number above 0.")
    progress = SimulationProgress(request.federation.rounds.count, request.until, shown=not args.quiet)
    progress.stage(f"reading {args.model} and {args.data}")
    bundle = bundle_of(args.model, classes=args.classes, sample=args.input, seed=args.seed)
    if args.widen is not None:
        from edgefl.artifacts.widen import widen

        bundle = widen(bundle, args.widen, seed=args.seed)
    found = simulation_inputs(request, bundle)
    if request.until and args.rounds is None:
        _warn_of_schedule(found.strategy)
    folder = RunFolder(_out(args), request, bundle, found.fleet)
    if args.over == "http":
        from edgefl.simulation.over_http import simulate_over_http

        summary = simulate_over_http(request, bundle, found, folder, _workers(args), progress)
    else:
        summary = _in_processes(args, request, bundle, found, folder, progress)
    progress.done()
    if args.json:
        print(json.dumps({"run": str(folder.path), **json.loads(dumps(summary))}, indent=2))
    else:
        lines = summary_lines(request, summary, over_http=args.over == "http")
        print("\n".join([*lines, f"the run is in {folder.path}"]))
    if not summary.updates:
        print("edgefl: warning: no update arrived in time; use a longer --deadline, or other devices", file=sys.stderr)
    return 0


def _warn_of_schedule(strategy: "Strategy") -> None:
    """Warn if the learning rate follows a schedule that the run may end long before the end of."""
    schedule = getattr(getattr(strategy, "descent", None), "schedule", "constant")
    if schedule != "constant":
        print(
            f"edgefl: warning: the schedule of the learning rate ({schedule}) is spread over {_MOST_ROUNDS:,} rounds; "
            "give --rounds, as many as you expect",
            file=sys.stderr,
        )


def _in_processes(
    args: argparse.Namespace,
    request: "SimulationRequest",
    bundle: "Bundle",
    found: "SimulationInputs",
    folder: "RunFolder",
    progress: "SimulationProgress",
) -> "Summary":
    from edgefl.simulation.simulate import simulate

    progress.stage("starting workers")
    executor = _executor(args, bundle, found)
    return simulate(request, bundle, found, executor, folder, show=progress.round, stage=progress.stage)


def _executor(args: argparse.Namespace, bundle: "Bundle", found: "SimulationInputs") -> "Executor":
    from edgefl.artifacts.bundle import pack_bundle

    packed = pack_bundle(bundle)
    if args.engine == "ray":
        from edgefl.simulation.ray_executor import ray_executor

        return ray_executor(packed, found.fleet, address=args.ray_address, workers=args.workers)
    from edgefl.simulation.executor import open_executor

    return open_executor(packed, found.fleet, _workers(args))


def _workers(args: argparse.Namespace) -> int:
    return args.workers or len(os.sched_getaffinity(0))


def _request(args: argparse.Namespace) -> "SimulationRequest":
    from edgefl.cli.arguments import quantity, settings
    from edgefl.federation.settings import (
        BudgetCaps,
        BufferingSettings,
        EvaluationSettings,
        FederationMode,
        FederationSettings,
        RoundSettings,
        SelectionSettings,
        StrategyChoice,
    )
    from edgefl.simulation.known_classes import classes_from
    from edgefl.simulation.request import SimulationRequest
    from edgefl.simulation.run_cost import limits_from
    from edgefl.values import FieldError, LocalWork, Seconds

    def seconds(option: str, text: str | None) -> float | None:
        return None if text is None else quantity(Seconds, text, option)

    until = _until(args)
    rounds = args.rounds if args.rounds is not None else _MOST_ROUNDS if until else _ROUNDS
    deadline, every = quantity(Seconds, args.deadline, "--deadline"), args.evaluate_every or rounds
    within = quantity(Seconds, args.available_within, "--available-within")
    chosen = settings(args.set)
    try:
        work = LocalWork(epochs=args.epochs, batch_size=args.batch, most_steps=args.most_steps)
        federation = FederationSettings(
            name="simulation",
            seed=args.seed,
            strategy=_option("--strategy", lambda: StrategyChoice(name=args.strategy, settings=chosen)),
            work=work,
            rounds=_option("--rounds", lambda: RoundSettings(count=rounds, deadline=deadline)),
            selection=_option(
                "--per-round",
                lambda: SelectionSettings(
                    devices=_selected(args),
                    over_select=args.over_select,
                    available_within=within,
                    wait_for=args.wait_for,
                ),
            ),
            mode=FederationMode(args.mode),
            buffering=_option("--buffer", lambda: BufferingSettings(size=args.buffer, at_once=args.at_once)),
            budget=BudgetCaps(seconds=seconds("--budget-seconds", args.budget_seconds)),
            evaluation=_option(
                "--evaluate-every",
                lambda: EvaluationSettings(data="test", every=every),
            ),
            round_share=args.share,
        )
        return SimulationRequest(
            model=args.model,
            data=args.data,
            folder=args.folder,
            partition=args.partition,
            devices=args.devices,
            samples=args.samples,
            test_samples=args.test_samples,
            classes=classes_from(args.fleet),
            trace=args.trace,
            availability=args.availability,
            resumes=args.resume,
            until=_option("--until", lambda: limits_from(until)),
            federation=federation,
            personalise=not args.no_personal,
        )
    except FieldError as error:
        raise EdgeFLError(error.problem, fix=error.fix) from None


def _option(name: str, build: "Callable[[], Value]") -> "Value":
    """Build a value from an option; an error names the option."""
    from edgefl.values import FieldError

    try:
        return build()
    except FieldError as error:
        raise EdgeFLError(f"{name} {error.says}", fix=error.fix) from None


def _until(args: argparse.Namespace) -> list[str]:
    """Return the limits of cost, as texts."""
    if args.stop_after is None:
        return list(args.until)
    print("edgefl: warning: --stop-after is deprecated; use --until", file=sys.stderr)
    unit = "" if args.stop_after.strip()[-1:].isalpha() else " s"
    return [*args.until, f"{args.stop_after}{unit}"]


def _selected(args: argparse.Namespace) -> int:
    """Return how many devices are selected in a round."""
    return min(10, max(args.devices, 1)) if args.per_round is None else int(args.per_round)


def _out(args: argparse.Namespace) -> Path:
    """Return the given folder, or a new one."""
    if args.out is not None:
        return Path(str(args.out))
    name = str(args.strategy).rpartition(":")[2]  # the class of package.module:Class
    number, path = 1, Path("runs") / name
    while path.exists():
        number += 1
        path = Path("runs") / f"{name}-{number}"
    return path
