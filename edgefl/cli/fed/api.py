"""The operator's side of the coordinator's HTTP API: one request, its answer, and what an error says.

Every verb of `edgefl fed` makes an `Api` with `connect`, from the options that `add_connection` gave its parser. It is
about addresses, the admin token and TLS; what the paths mean is for the verbs to know.
"""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote, urlsplit

from edgefl.errors import EdgeFLError, MissingDependencyError

if TYPE_CHECKING:
    import httpx

__all__ = ["Api", "CoordinatorUnreachableError", "add_connection", "add_coordinator", "connect", "model_of", "path_of"]

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_STATE = "~/.edgefl/coordinator"
TOKEN_FILE = "admin-token"
"""In the state folder of `edgefl serve`, for its user alone."""

_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 120.0
"""How long nothing may arrive; checking a large bundle takes its time."""


class CoordinatorUnreachableError(EdgeFLError):
    """No whole answer came; another time one may."""


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which coordinator, by which right, and in which form."""
    add_coordinator(parser)
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")


def add_coordinator(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which coordinator, and by which right."""
    group = parser.add_argument_group("the coordinator")
    group.add_argument("--url", metavar="URL", help=f"its address (default: $EDGEFL_URL, or {DEFAULT_URL})")
    group.add_argument(
        "--token-file",
        metavar="FILE",
        help=f"the admin token (default: $EDGEFL_ADMIN_TOKEN, or the file {DEFAULT_STATE}/{TOKEN_FILE})",
    )
    group.add_argument("--certificate", metavar="FILE", help="certificate that signed the coordinator's, in PEM form")


def connect(args: argparse.Namespace) -> "Api":
    """Return the coordinator that the options name."""
    url = (args.url or os.environ.get("EDGEFL_URL") or DEFAULT_URL).rstrip("/")
    return Api(url, _token(args.token_file), args.certificate)


def path_of(*parts: object) -> str:
    """Return a path of the API: what a person wrote stays one part of it, whatever it holds."""
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)


def model_of(federation: str, device: str | None, budget: float | None) -> tuple[str, dict[str, str]]:
    """Return the path and the query of a federation's model, of a device's part, or of the best part of a size."""
    part = () if device is None else ("devices", device)
    query = {} if budget is None else {"fraction": f"{budget:.12g}"}
    return path_of("federations", federation, *part, "model"), query


def _token(given: str | None) -> str:
    token = os.environ.get("EDGEFL_ADMIN_TOKEN") if given is None else None
    if not token:
        path = Path(given or f"{DEFAULT_STATE}/{TOKEN_FILE}").expanduser()
        try:
            token = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no ASCII text"
            raise EdgeFLError(
                f"there is no admin token: {path}: {reason}",
                fix="Set EDGEFL_ADMIN_TOKEN, or give --token-file; `edgefl serve` keeps it in its state folder.",
            ) from None
        if not token:
            raise EdgeFLError(f"there is no admin token: {path} is empty", fix="Give the file that has it.")
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise EdgeFLError("the admin token has characters that none has", fix="Copy it again, without line ends.")
    return token


class Api:
    """One coordinator, seen by its operator."""

    def __init__(self, url: str, token: str, certificate: str | None = None) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingDependencyError("httpx", action="Talking to a coordinator", extra="coordinator") from None
        self.url = url
        self.now = time.time()
        """The coordinator's clock, as of its last answer."""
        self._httpx = httpx
        host = _host(url)
        local = host in ("127.0.0.1", "::1", "localhost")
        if urlsplit(url).scheme == "http" and not local:
            print(f"edgefl: warning: the admin token goes to {host} unencrypted", file=sys.stderr)
        self._client = httpx.Client(
            base_url=url,
            verify=_verification(certificate),
            timeout=httpx.Timeout(_IDLE_SECONDS, connect=_CONNECT_SECONDS),
            headers={"Authorization": f"Bearer {token}"},
            trust_env=not local,  # what is meant for this machine shall not go through a proxy
        )

    def __enter__(self) -> "Api":
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def get(self, path: str, **query: str | int) -> Any:
        """Return the JSON at a path."""
        return self._ask("GET", path, params=query)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send JSON, and return what comes back."""
        return self._ask("POST", path, json={} if body is None else dict(body))

    def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send JSON to where it belongs, and return what comes back."""
        return self._ask("PUT", path, json=dict(body))

    def send(self, path: str, data: bytes, kind: str) -> Any:
        """Send bytes of a media type, and return the JSON that comes back."""
        return self._ask("POST", path, content=data, headers={"Content-Type": kind})

    def delete(self, path: str) -> None:
        """Remove what is at a path."""
        self._ask("DELETE", path)

    def download(self, path: str, out: BinaryIO, **query: str) -> int:
        """Write what is at a path to a file, and return its size."""
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
            raise EdgeFLError(f"{self.url} does not answer as a coordinator does", fix="Check the address.") from None

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what can happen to a connection into words."""
        try:
            yield
        except (self._httpx.HTTPError, self._httpx.InvalidURL, self._httpx.StreamError) as error:
            said = str(error) or type(error).__name__
            if "CERTIFICATE" in said.upper():
                fix = "Give the certificate that signed the coordinator's with --certificate, and the name it is for."
            else:
                fix = "Is it running (edgefl serve), and is that its address? Give it with --url or EDGEFL_URL."
            raise CoordinatorUnreachableError(
                f"the coordinator at {self.url} cannot be reached: {said}", fix=fix
            ) from None


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if not host:
        raise EdgeFLError(f"{url!r} is no address of a coordinator", fix="Write for example https://10.0.0.5:8443.")
    return host


def _verification(certificate: str | None) -> Any:
    import ssl

    if certificate is None:
        return True
    try:
        return ssl.create_default_context(cafile=certificate)
    except OSError as error:
        raise EdgeFLError(
            f"the certificate {certificate} cannot be used: {error}", fix="Give a certificate in PEM form."
        ) from None


def _refusal(answer: "httpx.Response") -> EdgeFLError:
    """Return what the coordinator says against a request, in its own words."""
    try:
        said = json.loads(answer.content)["error"]
        problem, fix = str(said["problem"]), str(said["fix"])
    except (ValueError, KeyError, TypeError, RecursionError):
        problem = f"{answer.url.copy_with(query=None)} answered with status {answer.status_code}"
        return EdgeFLError(problem, fix="Is that the address of a coordinator? Look into its log.")
    return EdgeFLError(problem, fix=fix)
