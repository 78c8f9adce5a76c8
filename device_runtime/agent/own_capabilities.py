"""What this software can run: sent when a device enrols, and again when it has changed since."""

import importlib.metadata

from device_runtime.engines import ENGINES, installed_engines
from device_runtime.telemetry import machine
from edgefl import __version__
from edgefl.local_rules import changes_widths, rule_names
from edgefl.values import Capabilities, ClientSoftware, EngineSoftware, GraphFormat
from edgefl.wire import Bits, Counts, Dense, Slice, Sparse

__all__ = ["own_capabilities"]

_CODECS = (Dense, Slice, Sparse, Bits, Counts)


def own_capabilities(engine: str | None = None) -> Capabilities:
    """Return what this device can run with an engine, by default the first that is installed.

    Of several engines it names the one in use alone: plans are for that one.
    """
    here = machine()
    names = [engine] if engine is not None else list(installed_engines()[:1])
    fixed_widths = names == [GraphFormat.EXECUTORCH]
    return Capabilities(
        client=ClientSoftware(name="edgefl-python", version=__version__),
        platform=f"{here.system} {here.architecture}",
        engines=tuple(_engine(name) for name in names if name in ENGINES),
        rules=tuple(name for name in rule_names() if not (fixed_widths and changes_widths(name.partition(".")[0]))),
        codecs=tuple(codec.codec for codec in _CODECS),
    )


def _engine(name: str) -> EngineSoftware:
    package = ENGINES[name][0]
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # a build whose package has another name
        version = "unknown"
    return EngineSoftware(name=package, version=version, format=GraphFormat(name))
