"""The internals of uvicorn that `coordinator.http.protocol` and `coordinator.http.server` override or use.

They are not a public interface: any release may change them. A digest of the source of each tells when one did.
"""

import hashlib
import inspect
import tomllib
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from coordinator.http.protocol import LimitedProtocol, MeasuredReads
from coordinator.http.server import CoordinatorServer

ROOT = Path(__file__).parents[3]
KNOWN: dict[Any, str] = {
    HttpToolsProtocol.__init__: "4f08999410347141",
    HttpToolsProtocol.connection_made: "6efb565ff3d36b91",
    HttpToolsProtocol.connection_lost: "c91a4c9bf2e29c55",
    HttpToolsProtocol.data_received: "010a7ae59a5d3b1a",
    HttpToolsProtocol.send_400_response: "ae5a4a3782b646fd",
    HttpToolsProtocol.on_message_begin: "96d377fdc7c2baef",
    HttpToolsProtocol.on_url: "37be44e962b04ca8",
    HttpToolsProtocol.on_header: "65d62c044f61fdbd",
    HttpToolsProtocol.on_headers_complete: "1ea8589acfad92d8",
    HttpToolsProtocol.on_body: "dba9c32aeba35b6a",
    HttpToolsProtocol.on_message_complete: "1fbad42dc31fc01f",
    HttpToolsProtocol.on_response_complete: "64e254f28e389e76",
    HttpToolsProtocol._unsupported_upgrade_warning: "55bbd2762b189d9a",
    HttpToolsProtocol.shutdown: "d7351fa33f00d430",
    HttpToolsProtocol.pause_writing: "17a8fd215d96a13c",
    HttpToolsProtocol.resume_writing: "7844bbaa8cceb1ef",
    HttpToolsProtocol.timeout_keep_alive_handler: "8b53bf5f2e202970",
    RequestResponseCycle.__init__: "4d2f220910c33c12",
    RequestResponseCycle.run_asgi: "0f33f2449a444bc2",
    RequestResponseCycle.send: "abdd8601b326a8da",
    RequestResponseCycle.receive: "8124ae006be71184",
    uvicorn.Server.__init__: "c150b55284f7511e",
    uvicorn.Server.startup: "2aa1d70a244bfcf2",
    uvicorn.Server.shutdown: "9b33c50562992b1e",
    uvicorn.Server.handle_exit: "553276efa26e09ea",
    FlowControl: "126debcdaa894c83",
}
"""Digests of the sources in the version that is pinned."""
USED_ATTRIBUTES = (
    "client",
    "cycle",
    "flow",
    "headers",
    "loop",
    "parser",
    "pipeline",
    "scope",
    "timeout_keep_alive_task",
    "transport",
)


def _digest(internal: Any) -> str:
    return hashlib.sha256(inspect.getsource(internal).encode()).hexdigest()[:16]


def test_the_pinned_version_is_the_one_that_was_compared() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (pinned,) = [wanted for wanted in extras["coordinator"] if wanted.startswith("uvicorn")]
    assert pinned == f"uvicorn[standard]=={uvicorn.__version__}", (
        "uvicorn must be pinned exactly, as coordinator/http/protocol.py overrides its internals. For another version, "
        "run this file against it, follow what it says, and change the pin in pyproject.toml."
    )


@pytest.mark.parametrize("internal", KNOWN, ids=lambda internal: internal.__qualname__)
def test_an_internal_is_as_it_was_compared(internal: Any) -> None:
    name, digest = internal.__qualname__, _digest(internal)
    assert digest == KNOWN[internal], (
        f"{name} of uvicorn {uvicorn.__version__} has changed. Compare its source with that of the version before, and "
        "check what coordinator/http/protocol.py (LimitedProtocol, MeasuredReads, _OneWrite) and "
        f"coordinator/http/server.py (CoordinatorServer) assume about it. Then set its digest here to {digest!r}."
    )


@pytest.mark.parametrize(
    ("ours", "base"), [(LimitedProtocol, HttpToolsProtocol), (CoordinatorServer, uvicorn.Server)], ids=str
)
def test_every_overridden_method_is_compared(ours: type, base: type) -> None:
    overridden = {getattr(base, name) for name in vars(ours) if inspect.isfunction(vars(base).get(name))}
    missing = sorted(method.__qualname__ for method in overridden - KNOWN.keys())
    assert not missing, f"add these to KNOWN, with their digests: {missing}"


def test_the_attributes_that_are_used_exist() -> None:
    made = inspect.getsource(HttpToolsProtocol.__init__)
    for name in USED_ATTRIBUTES:
        assert f"self.{name}:" in made or f"self.{name} =" in made or f"self.{name}=" in made, (
            f"uvicorn's HttpToolsProtocol has no {name!r} any more, which coordinator/http/protocol.py uses"
        )
    assert httptools_impl.STATUS_LINE[431].startswith(b"HTTP/1.1 431 ")
    assert "response_complete" in inspect.getsource(RequestResponseCycle.__init__)


def test_every_call_of_a_connection_is_passed_on() -> None:
    """uvicorn and the event loop call these on the protocol that they made, which is the one that reads."""
    for name in ("connection_made", "connection_lost", "pause_writing", "resume_writing"):
        assert name in vars(MeasuredReads)
        assert inspect.isfunction(getattr(HttpToolsProtocol, name))
