"""The operator's client of the coordinator's HTTP API: requests, responses and error messages.

Every subcommand of `edgefl fed` makes an `Api` with `connect`, from the options that `add_connection` added to its
parser. This module handles addresses, the admin token and TLS; the subcommands know the paths.
"""

import argparse
import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

from edgefl.coordinator_url import is_this_machine
from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.pairing import Pairing
from edgefl.pins import PINS_FILE, check_pins

if TYPE_CHECKING:
    import ssl

    import httpx

__all__ = [
    "Api",
    "CoordinatorConflictError",
    "CoordinatorRejectedError",
    "CoordinatorUnreachableError",
    "add_connection",
    "add_coordinator",
    "connect",
    "model_of",
    "path_of",
]

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_STATE = "~/.edgefl/coordinator"
TOKEN_FILE = "admin-token"
"""In the state folder of `edgefl serve`, readable by its user alone."""

_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 120.0
"""Read timeout in seconds; checking a large bundle takes time."""


_LATER = frozenset({429, 502, 503, 504})
"""Statuses of a coordinator that starts, stops or has no room, or of a proxy before it."""


class CoordinatorUnreachableError(EdgeFLError):
    """No complete response arrived, or one that says that it cannot work now; a retry may succeed."""


class CoordinatorConflictError(EdgeFLError):
    """The request does not fit the present state: somebody else was faster."""


class CoordinatorRejectedError(EdgeFLError):
    """What was sent is not valid, or too large; sending it again is of no use."""


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Add the options for the coordinator, the token and the output format."""
    add_coordinator(parser)
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")


def add_coordinator(parser: argparse.ArgumentParser) -> None:
    """Add the options for the coordinator and the token."""
    group = parser.add_argument_group("the coordinator")
    group.add_argument(
        "--url", metavar="URL|URI", help=f"its URL, or a pairing URI (default: $EDGEFL_URL, or {DEFAULT_URL})"
    )
    group.add_argument(
        "--token-file",
        metavar="FILE",
        help=f"file with the admin token (default: $EDGEFL_ADMIN_TOKEN, or {DEFAULT_STATE}/{TOKEN_FILE})",
    )
    group.add_argument("--certificate", metavar="FILE", help="certificate that signed the coordinator's, in PEM format")
    group.add_argument(
        "--pin",
        action="append",
        default=[],
        metavar="PIN",
        help="trust the coordinator with this public key, sha256:..., whatever its certificate says; repeatable "
        "(default: in the pairing URI; on this machine, in the folder of the admin token)",
    )
    group.add_argument(
        "--insecure",
        action="store_true",
        help="allow http:// to another host: the token and models are then sent unencrypted",
    )


def connect(args: argparse.Namespace) -> "Api":
    """Connect to the coordinator that the options name."""
    pairing = Pairing.at(args.url or os.environ.get("EDGEFL_URL") or DEFAULT_URL, insecure=args.insecure)
    if args.certificate is None:
        pins = tuple(args.pin) or pairing.pins or _pins_here(pairing.url, args.token_file)
        pairing = replace(pairing, pins=pins)
    elif args.pin or pairing.pins:
        raise EdgeFLError(
            "there are pins and a certificate, but only one of them can decide whom to trust", fix="Give one of them."
        )
    return Api(pairing.url, _token(args.token_file), pairing.tls(args.certificate))


def path_of(*parts: object) -> str:
    """Return an API path; user input stays one path segment, whatever it contains."""
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)


def model_of(
    federation: str, device: str | None, budget: float | None, round_number: int | None = None, *, held: bool = False
) -> tuple[str, dict[str, str]]:
    """Return the path and query of a federation's model, a device's submodel, or the best submodel of a size.

    Of the model, `held` selects the part that devices hold.
    """
    part = () if device is None else ("devices", device)
    query = {} if budget is None else {"fraction": f"{budget:.12g}"}
    if round_number is not None:
        query["round"] = str(round_number - 1)  # people count rounds from 1
    if device is None and budget is None:
        query["part"] = "held" if held else "whole"
    return path_of("federations", federation, *part, "model"), query


def _pins_here(url: str, token_file: str | None) -> tuple[str, ...]:
    """Return the pins of the coordinator on this machine whose token is used, if it made its own certificate."""
    path = Path(token_file or f"{DEFAULT_STATE}/{TOKEN_FILE}").expanduser().with_name(PINS_FILE)
    if not url.startswith("https:") or not is_this_machine(url):
        return ()
    try:
        return check_pins(path.read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError, EdgeFLError):
        return ()


def _token(given: str | None) -> str:
    token = os.environ.get("EDGEFL_ADMIN_TOKEN") if given is None else None
    if not token:
        path = Path(given or f"{DEFAULT_STATE}/{TOKEN_FILE}").expanduser()
        try:
            token = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
            raise EdgeFLError(
                f"cannot read the admin token from {path}: {reason}",
                fix="Set EDGEFL_ADMIN_TOKEN or give --token-file; `edgefl serve` keeps the token in its state folder.",
            ) from None
        if not token:
            raise EdgeFLError(f"the admin token file {path} is empty", fix="Give the right file with --token-file.")
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise EdgeFLError("the admin token contains invalid characters", fix="Copy it again, without line breaks.")
    return token


class Api:
    """A connection to a coordinator, with the operator's rights."""

    def __init__(self, url: str, token: str, tls: "ssl.SSLContext | None" = None) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingDependencyError("httpx", action="Talking to a coordinator", extra="coordinator") from None
        self.url = url
        self.now = time.time()
        """The coordinator's clock, as of its last response."""
        self._httpx = httpx
        self._client = httpx.Client(
            base_url=url,
            verify=True if tls is None else tls,
            timeout=httpx.Timeout(_IDLE_SECONDS, connect=_CONNECT_SECONDS),
            headers={"Authorization": f"Bearer {token}"},
            trust_env=not is_this_machine(url),  # requests to this machine must not go through a proxy
            follow_redirects=False,  # the token is for this host, and for no other that it names
        )

    def __enter__(self) -> "Api":
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def get(self, path: str, **query: str | int) -> Any:
        """Return the JSON at a path."""
        return self._ask("GET", path, params=query)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """POST JSON and return the JSON response."""
        return self._ask("POST", path, json={} if body is None else dict(body))

    def put(self, path: str, body: Mapping[str, Any], **query: str) -> Any:
        """PUT JSON and return the JSON response."""
        return self._ask("PUT", path, json=dict(body), params=query)

    def send(self, path: str, data: bytes, kind: str) -> Any:
        """Send bytes of a media type and return the JSON response."""
        return self._ask("POST", path, content=data, headers={"Content-Type": kind})

    def delete(self, path: str, **query: str) -> None:
        """Delete the resource at a path."""
        self._ask("DELETE", path, params=query)

    def download(self, path: str, out: BinaryIO, **query: str) -> int:
        """Download a resource to a file and return its size."""
        count = 0
        with self._explained(), self._client.stream("GET", path, params=query) as answer:
            if answer.status_code != 200:
                answer.read()
                raise _refusal(answer)
            for piece in answer.iter_bytes():
                out.write(piece)
                count += len(piece)
        return count

    def _ask(self, method: str, path: str, **what: Any) -> Any:
        with self._explained():
            answer = self._client.request(method, path, **what)
        if not 200 <= answer.status_code < 300:
            raise _refusal(answer)
        with contextlib.suppress(KeyError, ValueError, TypeError):
            self.now = parsedate_to_datetime(answer.headers["date"]).timestamp()
        try:
            return json.loads(answer.content) if answer.content else None
        except ValueError:
            raise EdgeFLError(f"{self.url} does not respond like a coordinator", fix="Check the URL.") from None

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn connection failures into explained errors."""
        try:
            yield
        except (self._httpx.HTTPError, self._httpx.InvalidURL, self._httpx.StreamError) as error:
            said = str(error) or type(error).__name__
            if "CERTIFICATE" in said.upper():
                fix = "Pass the signing certificate with --certificate, and use the host name it is for."
            else:
                fix = "Check that it is running (edgefl serve), and set its URL with --url or EDGEFL_URL."
            raise CoordinatorUnreachableError(
                f"the coordinator at {self.url} cannot be reached: {said}", fix=fix
            ) from None


_ERRORS: Mapping[int, type[EdgeFLError]] = {
    400: CoordinatorRejectedError,
    409: CoordinatorConflictError,
    413: CoordinatorRejectedError,
}
"""Errors by the status of a response."""


def _refusal(answer: "httpx.Response") -> EdgeFLError:
    """Return the coordinator's error message as an error."""
    if answer.has_redirect_location:
        return EdgeFLError(
            f"{answer.url.copy_with(query=None)} redirects to {answer.headers['location'][:200]}",
            fix="If that is the coordinator, give that URL with --url: the token goes to no other address.",
        )
    try:
        said = json.loads(answer.content)["error"]
        problem, fix = str(said["problem"]), str(said["fix"])
    except (ValueError, KeyError, TypeError, RecursionError):
        problem = f"{answer.url.copy_with(query=None)} answered with status {answer.status_code}"
        fix = "Is that the address of a coordinator? Look into its log."
    if answer.status_code in _LATER:
        return CoordinatorUnreachableError(problem, fix=fix)
    return _ERRORS.get(answer.status_code, EdgeFLError)(problem, fix=fix)
