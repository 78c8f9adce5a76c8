"""`edgefl join`: take part in a federation with this device until it ends or is stopped.

The run function imports the device runtime, which needs an engine; the help text must work without it.
"""

import argparse
import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.cli.join_engine import AUTO, federation_work, own_engine
from edgefl.cli.join_home import device_homes, home_of
from edgefl.cli.join_pairing import add_pairing, join_key, named, paired, typed_in
from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    import ssl

    from device_runtime.agent.agent import Agent
    from device_runtime.agent.agent_home import AgentHome
    from device_runtime.agent.owner_policy import OwnerPolicy
    from device_runtime.agent.transport import HttpTransport
    from device_runtime.agent.worker_process import WorkerProcess
    from device_runtime.local_data import LocalData
    from edgefl.pairing import Pairing
    from edgefl.values import DeviceProfile, SampleSpec

__all__ = ["add_data", "add_parser", "local_data"]

_EPILOG = """\
examples:
  EDGEFL_JOIN_URI='https://10.0.0.5:8443/join#key=edgefl-key-...&pin=sha256:...' edgefl join --data mine.npz
  edgefl join https://fl.example.org --data mine.npz
  edgefl join https://10.0.0.5:8443 --pin sha256:... --data mine.npz
  edgefl join https://fl.example.org --data mine.npz --mains-only --below-celsius 75 --hours 22-6
  edgefl join http://127.0.0.1:8000 --data digits --client 2/5 --partition dirichlet:0.5 --home device2

A pairing URI is what the coordinator's QR code contains: its URL, a join key, and the pins of its public key, which is
then the one thing that is trusted. Every user of this machine can read its command lines, so a URI with a key, or a
key, should come from the environment (EDGEFL_JOIN_URI, EDGEFL_JOIN_KEY), from standard input (-), or be typed in.

The key is needed only once: the device's name, its secret and the pins are stored in --home, readable by its user
alone, and a restarted device continues where it stopped, with its URL or without. Ctrl-C or SIGTERM stops the device
within five seconds; no finished training is lost.
"""
_DATA_OPTIONS = ("data", "folder", "client", "partition", "seed", "validation")
_LONGEST_WAIT = 30.0
_PATIENCE = 4.0
"""Seconds that running work gets to finish after a signal."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "join",
        help="take part in a federation with this device",
        description="Enrol this device with a coordinator, then do its training tasks on this device's own data.\n"
        "Needs the extra 'device'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_pairing(parser)
    parser.add_argument(
        "--home",
        metavar="DIR",
        help="folder of the device's files, a device of its own (default: a folder per federation below ~/.edgefl)",
    )
    parser.add_argument("--name", metavar="NAME", help="name of the device (default: the coordinator chooses one)")
    parser.add_argument("--profile", metavar="FILE", help="profile of this device (default: measure it once)")
    parser.add_argument(
        "--engine",
        metavar="NAME",
        help="onnx, executorch, or auto for the faster of those installed (default: the first installed)",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="engine threads (default: all usable cores)")
    parser.add_argument("--tasks", type=int, metavar="N", help="stop after N tasks")
    parser.add_argument(
        "--wait",
        type=float,
        default=20.0,
        metavar="S",
        help="long-poll for this many seconds while there is no task; 0 disables long polling (default: 20)",
    )
    parser.add_argument(
        "--checkpoint-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="save a running task this often; more often loses less without power and wears the disk (default: 60)",
    )
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    add_data(parser)
    _add_policy(parser.add_argument_group("limits on when and how much the device works"))
    parser.set_defaults(run=run)


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the device's samples."""
    group = parser.add_argument_group("the device's own data")
    group.add_argument("--data", required=True, metavar="NAME|PATH", help="a known data set, or an .npz file")
    group.add_argument("--folder", metavar="DIR", help="folder of the named data set (default: $EDGEFL_DATA/NAME)")
    group.add_argument("--client", metavar="I/N", help="use the share of client I of N, counted from 1")
    group.add_argument(
        "--partition", metavar="SPEC", default="iid", help="how the data is divided among clients (default: iid)"
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the partition (default: 0)")
    group.add_argument(
        "--validation", type=float, default=0.1, metavar="F", help="fraction held out for validation (default: 0.1)"
    )


def _add_policy(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--mains-only", action="store_true", help="work only on mains power")
    group.add_argument(
        "--unmetered-only", action="store_true", help="work only on an unmetered network (NetworkManager says which)"
    )
    group.add_argument(
        "--outside-battery-saver", action="store_true", help="do not work while the system saves battery"
    )
    group.add_argument("--below-celsius", type=float, metavar="T", help="work only below this temperature")
    group.add_argument("--hours", metavar="FROM-TO", help="work only during these hours, such as 22-6")
    group.add_argument("--joules-a-day", type=float, metavar="J", help="daily energy limit")
    group.add_argument("--megabytes-a-day", type=float, metavar="MB", help="daily traffic limit")
    group.add_argument("--memory", type=float, metavar="MB", help="most memory of a task (default: what is free)")
    group.add_argument(
        "--minutes-a-task", type=float, default=60, metavar="MIN", help="longest time of a task (default: 60)"
    )
    group.add_argument(
        "--cache", type=float, default=2048, metavar="MB", help="size of the download cache (default: 2048)"
    )


def run(args: argparse.Namespace) -> int:
    """Join, and work until stopped."""
    _check(args)
    pairing = named(args)
    umask = os.umask(0o077)  # whatever is written from here on is for this user alone
    try:
        return _joined(args, pairing)
    finally:
        os.umask(umask)


def _joined(args: argparse.Namespace, coordinator: "Pairing | None") -> int:
    from device_runtime.agent.agent_home import AgentHome
    from device_runtime.agent.client import CoordinatorClient, UnknownDeviceError
    from device_runtime.agent.own_capabilities import own_capabilities
    from device_runtime.profiler.federation_programs import download_programs

    if coordinator is None and args.home is None and not device_homes().known():
        coordinator = typed_in(args)
    place, device = home_of(args, coordinator)
    home = AgentHome(place)
    home.lock()
    say = (lambda text: None) if args.quiet else _say
    pairing = paired(args, coordinator, home)
    tls, url = pairing.tls(args.certificate), pairing.url
    with contextlib.closing(_worker(args, home)) as worker, contextlib.closing(_transport(url, tls)) as transport:
        key = join_key(args, pairing, home)

        def chosen() -> "tuple[str, DeviceProfile]":
            place, secret = device or home.folder, _secret(home, key)
            client = CoordinatorClient(transport)
            # An owner who limits the traffic has not allowed this download.
            limited = args.megabytes_a_day is not None or args.unmetered_only
            programs = None if limited else lambda: download_programs(client, secret)
            return own_engine(args, place, lambda: federation_work(client, secret), say, programs)

        # The worker checks the device's data, which takes less time than measuring.
        engine, profile = chosen() if args.engine == AUTO else (args.engine, None)
        worker.set_option("engine", engine)
        _start(worker, home, transport, key)
        if profile is None:
            engine, profile = chosen()
        agent = _agent(args, home, transport, worker, say, tls, device)
        can = own_capabilities(engine)
        agent.enrol(url, profile, key, name=args.name, capabilities=can, samples=worker.samples)
        try:
            return _run(agent)
        except UnknownDeviceError:
            if key is None:
                raise
            say("the coordinator no longer knows this device; joining again")
            home.forget_token()
            agent.enrol(url, profile, key, name=args.name, capabilities=can, samples=worker.samples)
            return _run(agent)


def _check(args: argparse.Namespace) -> None:
    """Check the ranges of numeric options."""
    limits = ("memory", "minutes_a_task", "cache", "below_celsius", "joules_a_day", "megabytes_a_day")
    for option in ("threads", "tasks", *limits):
        value = getattr(args, option)
        if value is not None and not 0 < value < float("inf"):
            name = option.replace("_", "-")
            raise EdgeFLError(f"--{name} is {value}", fix="Give a number above 0.")
    if not 0 <= args.checkpoint_seconds < float("inf"):
        raise EdgeFLError(
            f"--checkpoint-seconds is {args.checkpoint_seconds}", fix="Give 0, for every step, or more seconds."
        )
    if not 0 <= args.wait <= _LONGEST_WAIT:
        raise EdgeFLError(f"--wait is {args.wait}", fix=f"Give 0 to {_LONGEST_WAIT:.0f} seconds.")


def _run(agent: "Agent") -> int:
    """Run the agent in a thread, so that signals are handled even while it waits for the network."""
    stop, failures = threading.Event(), []

    def work() -> None:
        try:
            agent.run(stop)
        except BaseException as error:  # passed to the main thread, which reports it
            failures.append(error)

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, frame: stop.set())
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive() and not stop.is_set():
        thread.join(0.2)
    thread.join(_PATIENCE)
    if failures:
        raise failures[0]
    if thread.is_alive():  # in the middle of a long step or request; finished work is safe on disk
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    return 0


def _worker(args: argparse.Namespace, home: "AgentHome") -> "WorkerProcess":
    from device_runtime.agent.worker_process import WorkerProcess

    options = {
        "home": str(home.folder.absolute()),
        "engine": args.engine,
        "threads": args.threads,
        "data": {name: getattr(args, name) for name in _DATA_OPTIONS},
        "most_file_bytes": round(args.cache * 1e6),
        "checkpoint_seconds": args.checkpoint_seconds,
    }
    return WorkerProcess("edgefl.cli.join_worker", options)


def _start(worker: "WorkerProcess", home: "AgentHome", transport: "HttpTransport", key: str | None) -> None:
    """Start the worker, which checks the device's data against what the federation says about its samples."""
    from device_runtime.agent.client import CoordinatorClient
    from device_runtime.agent.sample_check import federation_sample
    from edgefl.values import dumps

    sample = federation_sample(home, CoordinatorClient(transport), key)
    worker.set_option("sample", None if sample is None else dumps(sample))
    worker.start()


def _secret(home: "AgentHome", key: str | None) -> str | None:
    """Return the device's token, or the key that it joins with."""
    identity = home.identity()
    token = None if identity is None else identity.token
    return token or key


def _transport(url: str, tls: "ssl.SSLContext | None") -> "HttpTransport":
    from device_runtime.agent.transport import HttpTransport

    return HttpTransport(url, tls=tls)


def _agent(
    args: argparse.Namespace,
    home: "AgentHome",
    transport: "HttpTransport",
    worker: "WorkerProcess",
    say: Any,
    tls: "ssl.SSLContext | None",
    device: Path | None,
) -> "Agent":
    from device_runtime.agent.agent import Agent, AgentSettings
    from device_runtime.agent.client import CoordinatorClient
    from device_runtime.agent.conditions import SystemConditions
    from device_runtime.agent.pin_refresh import PinRefresh
    from edgefl.pinned_tls import PinnedContext

    client = CoordinatorClient(transport)
    policy = _policy(args)
    settings = AgentSettings(
        policy=policy, wait_seconds=args.wait, cache_bytes=round(args.cache * 1e6), most_tasks=args.tasks
    )
    pins = PinRefresh(home, client, tls) if isinstance(tls, PinnedContext) else None
    conditions = SystemConditions(policy)
    return Agent(home, client, worker, settings=settings, conditions=conditions, pins=pins, device=device, say=say)


def _policy(args: argparse.Namespace) -> "OwnerPolicy":
    from device_runtime.agent.owner_policy import OwnerPolicy, parse_hours

    return OwnerPolicy(
        mains_only=args.mains_only,
        unmetered_only=args.unmetered_only,
        outside_battery_saver=args.outside_battery_saver,
        below_celsius=args.below_celsius,
        hours=None if args.hours is None else parse_hours(args.hours),
        joules_a_day=args.joules_a_day,
        bytes_a_day=None if args.megabytes_a_day is None else round(args.megabytes_a_day * 1e6),
        memory_bytes=None if args.memory is None else round(args.memory * 1e6),
        task_seconds=60.0 * args.minutes_a_task,
    )


def local_data(args: argparse.Namespace, sample: "SampleSpec | None" = None) -> "LocalData":
    """Return the samples that the options select; raise a `DataError` if the federation's samples are others."""
    from device_runtime.local_data import LocalData
    from edgefl.data import fitting, load, parse_scheme, partition, split_clients

    dataset = load(args.data, args.folder)
    if sample is not None:
        dataset = fitting(dataset, sample)
    if args.client is None:
        return LocalData.whole(dataset, validation=args.validation, seed=args.seed)
    number, _, count = args.client.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise EdgeFLError(f"{args.client!r} is not a client", fix="Write for example 2/5: the second of five clients.")
    shares = partition(dataset.train, parse_scheme(args.partition), clients=int(count), seed=args.seed)
    splits = split_clients(shares, dataset.train.labels, validation=args.validation, test=0.0, seed=args.seed)
    return LocalData(dataset, splits[int(number) - 1])


def _say(text: str) -> None:
    from edgefl.values import printable

    with contextlib.suppress(OSError):  # the reader may be gone; the work goes on
        print(printable(text), file=sys.stderr, flush=True)
