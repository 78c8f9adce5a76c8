"""`edgefl compile`: a worker that compiles the ExecuTorch programs which a coordinator's devices want.

It needs torch and the ExecuTorch compiler, which the coordinator does not have. Several may run, on any machines; if
none does, devices go on with the programs that there are.
"""

import argparse
import contextlib
import io
import signal
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeFLError, MissingDependencyError

if TYPE_CHECKING:
    from collections import deque

    from edgefl.cli.compile_worker import Work
    from edgefl.cli.fed.api import Api

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl compile http://127.0.0.1:8000
  edgefl compile https://10.0.0.5:8443 --federation digits --token-file admin-token --jobs 4
  edgefl compile http://127.0.0.1:8000 --once
  edgefl compile http://127.0.0.1:8000 --all --once
  edgefl compile http://127.0.0.1:8000 --model mypackage.models:make_model --input 3,32,32

A worker that is killed costs nothing: its lease ends within a minute, and others go on. `edgefl fed programs` shows
which programs there are, which are wanted, and why one could not be compiled.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    from edgefl.cli.fed.api import add_coordinator

    parser = verbs.add_parser(
        "compile",
        help="compile the ExecuTorch programs that a coordinator's devices want",
        description="Ask a coordinator which ExecuTorch programs its devices want, compile and upload them.\n"
        "Needs the extras 'export', 'executorch' and 'coordinator'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("address", nargs="?", metavar="URL", help="the coordinator's URL (default: that of --url)")
    parser.add_argument("--federation", metavar="NAME", help="the federation (default: the only one that is not over)")
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--model",
        metavar="NAME",
        help="a zoo model, or package.module:factory (default: the zoo model that the federation's bundle names)",
    )
    model.add_argument("--input", metavar="SHAPE", help="shape of one sample of your own model (default: the bundle's)")
    model.add_argument("--classes", type=int, metavar="N", help="number of classes (default: the bundle's)")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="programs compiled at the same time (default: 1)"
    )
    parser.add_argument("--once", action="store_true", help="stop when nothing is wanted")
    parser.add_argument("--all", action="store_true", help="compile the whole ladder, not only what is wanted")
    parser.add_argument("--retry", action="store_true", help="first let programs be compiled again that failed")
    parser.add_argument(
        "--poll", type=float, default=3.0, metavar="S", help="seconds between two questions (default: 3)"
    )
    add_coordinator(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compile until nothing is wanted, or until stopped."""
    from edgefl.cli.compile_process import Compilers, ModelChoice
    from edgefl.cli.compile_worker import Worker, say
    from edgefl.cli.fed.api import connect, path_of

    _check(args)
    args.url = args.address or args.url
    with connect(args) as api:
        federation = args.federation or _only_federation(api)
        bundle = _bundle(api, federation)
        compilers = Compilers(ModelChoice(bundle, args.model, args.input, args.classes), args.jobs)
        try:
            say(f"checking that the model is that of {federation}")
            compilers.check()
            if args.retry:
                again = api.post(path_of("federations", federation, "programs", "retry"))["programs"]
                say(f"{again} programs are wanted again")
            more = _ladder(api, federation, bundle) if args.all else None
            worker = Worker(api, federation, compilers, args.jobs, args.poll, args.once)
            worker.more.extend(more or ())
            with _stopped_by_signals(worker.stopping):
                worker.run()
            say(f"{worker.delivered} programs delivered, {worker.failed} failed")
        finally:
            compilers.stop()
    return 1 if worker.failed and not worker.delivered else 0


def _check(args: argparse.Namespace) -> None:
    if args.jobs < 1:
        raise EdgeFLError(f"{args.jobs} is not a number of jobs", fix="Give at least 1.")
    if not args.poll > 0:
        raise EdgeFLError(f"{args.poll:g} is not a number of seconds", fix="Give more than 0.")
    if args.address and args.url and args.address != args.url:
        raise EdgeFLError("there are two addresses of a coordinator", fix="Give one of them.")
    for package, extra in (("torch", "export"), ("executorch", "executorch")):
        if find_spec(package) is None:
            raise MissingDependencyError(package, action="Compiling programs", extra=extra)


def _only_federation(api: "Api") -> str:
    from edgefl.cli.fed.api import path_of

    known: list[dict[str, Any]] = api.get(path_of("federations"))["federations"]
    names = [one["name"] for one in known if one["state"] not in ("finished", "aborted")]
    if len(names) != 1:
        found = f"the coordinator has the federations {', '.join(names[:8])}" if names else "there is no federation"
        raise EdgeFLError(found, fix="Name one with --federation.")
    return str(names[0])


def _bundle(api: "Api", federation: str) -> bytes:
    from edgefl.cli.fed.api import path_of

    out = io.BytesIO()
    api.download(path_of("federations", federation, "bundle"), out)
    return out.getvalue()


def _ladder(api: "Api", federation: str, data: bytes) -> "deque[Work]":
    """Return every program of the federation's ladder, at its batch size, that is not ready."""
    from edgefl.artifacts.bundle import INFER, TRAIN, unpack_bundle
    from edgefl.cli.compile_worker import not_ready
    from edgefl.cli.fed.api import path_of
    from edgefl.federation.settings import FederationSettings
    from edgefl.planning import Ladder
    from edgefl.values import from_json

    bundle, known = unpack_bundle(data), api.get(path_of("federations", federation))["settings"]
    settings = from_json(FederationSettings, known, tolerant=True)
    batch, widths = settings.work.batch_size, settings.programs.widths
    ladder = Ladder(bundle.graph, bundle.manifest.files[TRAIN], bundle.manifest.files[INFER], widths)
    specs = [ladder.training_spec(rung, cut, batch) for rung in ladder.widths.values() for cut in ladder.cuts.values()]
    specs += [ladder.inference_spec(rung, batch) for rung in ladder.widths.values()]
    made = api.get(path_of("federations", federation, "programs"))["programs"]
    return not_ready([(spec, ladder.rung_of(spec)) for spec in specs], made)


@contextlib.contextmanager
def _stopped_by_signals(stopping: threading.Event) -> Iterator[None]:
    """Give leases back at SIGTERM and at Ctrl-C, instead of letting them run out."""
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
