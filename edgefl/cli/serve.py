"""`edgefl serve`: run a coordinator until it is stopped.

The run function imports the coordinator, which needs a web server; the help text must work without it.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.cli.optional_dependencies import requires_extra
from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    from coordinator.federations.federation_file import FederationFile
    from coordinator.http.server import Listening
    from coordinator.http.server_settings import ServerSettings

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl serve examples/coordinator/federation.toml
  edgefl serve federation.toml --host 0.0.0.0 --port 8443
  edgefl serve federation.toml --host 0.0.0.0 --port 8443 --certificate certificate.pem --private-key private-key.pem
  edgefl serve --database postgresql://edgefl@db.local/edgefl --blobs s3://edgefl/blobs --log-format json

A new federation is created and started, and a join key for its devices is printed on stdout once: only its hash is
stored. An existing federation continues where it stopped; its file must not have changed.

On 127.0.0.1 connections are not encrypted. On any other address they are: without --certificate, the coordinator makes
a key and a certificate of its own, keeps them in --state, and puts the pins of the key into the pairing URI, so that
devices which join with it trust this coordinator and no other. `edgefl certificate` shows the pins and rotates the key.
A certificate of your own is verified by devices as usual, unless you give its pins too.

The web page is at the address that is printed. The admin token is in the file admin-token of --state, and a read-only
token in viewer-token, both readable by their user alone. EDGEFL_ADMIN_TOKEN and EDGEFL_VIEWER_TOKEN override them.
There are no options for tokens because other users can read command lines; put a database password into
EDGEFL_DATABASE for the same reason. Ctrl-C or SIGTERM stops the coordinator. Nothing that it acknowledged is lost, even
if it is killed.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "serve",
        help="run a coordinator",
        description="Run a coordinator: plan rounds, send submodels to devices, collect updates and aggregate them.\n"
        "Needs the extra 'coordinator'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("federations", nargs="*", metavar="FILE", help="TOML files of federations to create and start")
    parser.add_argument(
        "--start",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="start the federations that are created (default: yes)",
    )
    parser.add_argument(
        "--join-key-file", metavar="FILE", help="write the join key of a new federation to this file, not to stdout"
    )
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.add_argument(
        "--qr",
        action=argparse.BooleanOptionalAction,
        help="print the pairing URI of a new join key as a QR code (default: on a terminal, if other machines can "
        "reach the coordinator)",
    )
    _add_keeping(parser.add_argument_group("storage"))
    _add_listening(parser.add_argument_group("network"))
    _add_logging(parser.add_argument_group("logging, on stderr"))
    parser.set_defaults(run=run)


def _add_keeping(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--state",
        metavar="DIR",
        default="~/.edgefl/coordinator",
        help="state folder (default: ~/.edgefl/coordinator)",
    )
    group.add_argument(
        "--database",
        metavar="URL",
        help="database URL, such as postgresql://... (default: $EDGEFL_DATABASE, or SQLite in --state)",
    )
    group.add_argument(
        "--blobs", metavar="URL", help="blob storage, such as s3://bucket/folder (default: a folder in --state)"
    )


def _add_listening(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--host", metavar="ADDRESS", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    group.add_argument("--port", metavar="N", type=int, default=8000, help="port; 0 picks a free one (default: 8000)")
    group.add_argument(
        "--workers", metavar="N", type=int, default=1, help="server processes, about one per core (default: 1)"
    )
    group.add_argument(
        "--public-name",
        action="append",
        default=[],
        metavar="NAME",
        help="name, address or URL at which other machines reach this one, for pairing URIs and for the certificate; "
        "repeatable (default: the address of this machine)",
    )
    group.add_argument(
        "--tls", action="store_true", help="encrypt on 127.0.0.1 too, with the coordinator's own certificate"
    )
    group.add_argument(
        "--certificate",
        metavar="FILE",
        help="TLS certificate chain, in PEM format (default: beyond 127.0.0.1, one of the coordinator's own)",
    )
    group.add_argument("--private-key", metavar="FILE", help="private key (default: in the certificate file)")
    group.add_argument(
        "--pin",
        action="append",
        default=[],
        metavar="PIN|FILE",
        help="let devices trust this public key, sha256:... or the one of the certificate in FILE, and no other: for "
        "your own --certificate or a proxy's; give the next key's too; repeatable (default: the usual verification, or "
        "the keys of the coordinator's own certificate, to which these are added)",
    )
    group.add_argument(
        "--insecure-public",
        action="store_true",
        help="accept other machines without TLS: tokens and models are then sent unencrypted",
    )
    group.add_argument(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="reverse proxy whose X-Forwarded-For is trusted; repeatable",
    )


def _add_logging(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--log-format", choices=["text", "json"], default="text", help="log format (default: text)")
    group.add_argument(
        "--log-level", choices=["debug", "info", "warning", "error"], default="info", help="log level (default: info)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until a signal arrives."""
    serve, settings = _server(args)
    files = _read(args)

    def ready(listening: "Listening") -> None:
        _announce(args, listening, [_begin(args, listening, file) for file in files])

    serve(settings, federations=[(file.settings, file.bundle()) for file in files], ready=ready)
    return 0


def _server(args: argparse.Namespace) -> "tuple[Callable[..., None], ServerSettings]":
    """Return the serve function and its settings."""
    with requires_extra("coordinator", action="Running a coordinator"):
        from coordinator.http.server import serve
        from coordinator.http.server_settings import ServerSettings
    settings = ServerSettings(
        state=Path(args.state).expanduser(),
        database=args.database or os.environ.get("EDGEFL_DATABASE") or None,
        blobs=args.blobs,
        host=args.host,
        port=args.port,
        certificate=None if args.certificate is None else Path(args.certificate),
        private_key=None if args.private_key is None else Path(args.private_key),
        tls=args.tls,
        public_names=tuple(args.public_name),
        pins=_pins(args),
        insecure_public=args.insecure_public,
        trusted_proxies=tuple(args.trusted_proxy),
        admin_token=os.environ.get("EDGEFL_ADMIN_TOKEN") or None,
        viewer_token=os.environ.get("EDGEFL_VIEWER_TOKEN") or None,
        log_format=args.log_format,
        log_level=args.log_level,
        workers=args.workers,
    )
    return serve, settings


def _pins(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the pins that were given, or those of the certificates that were."""
    from edgefl.pins import certificates_in, check_pins, pin_of_certificate

    pins = []
    for given in args.pin:
        if given.startswith("sha256:"):
            pins.append(given)
            continue
        try:
            pins.append(pin_of_certificate(certificates_in(Path(given).read_text(encoding="utf-8"))[0]))
        except (OSError, UnicodeDecodeError) as error:
            raise EdgeFLError(f"{given} cannot be read: {error}", fix="Give a pin, or a certificate's file.") from None
    return check_pins(pins)


def _read(args: argparse.Namespace) -> "list[FederationFile]":
    """Read all files before anything is opened or created, so that errors in any of them are reported first."""
    from coordinator.federations.federation_file import read_federation_file

    files = [read_federation_file(Path(path), data_is_here=True) for path in args.federations]
    names = [file.settings.name for file in files]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise EdgeFLError(f"two files name their federation {min(twice)!r}", fix="Give each federation its own name.")
    if args.join_key_file is not None:
        if len(files) != 1:
            raise EdgeFLError(
                f"--join-key-file holds one key, but there are {len(files)} federation files",
                fix="Give one file, or make keys with: edgefl fed key NAME",
            )
        _check_writable(Path(args.join_key_file))
    return files


def _begin(args: argparse.Namespace, listening: "Listening", file: "FederationFile") -> dict[str, object]:
    """Start the federation if it has not been started, make a join key if it has none, and return what was done.

    This also completes the work of a coordinator that was killed between creating and starting a federation.
    """
    from coordinator.federations.lifecycle import Verb, existing, move, new_key

    context, name = listening.context, file.settings.name
    secret = None if context.store.keys.of(name) else new_key(context, name, label="made by edgefl serve")[1]
    state = existing(context, name).state
    if args.start and state == "created":
        state = move(context, name, Verb.START).state
    told: dict[str, object] = {"name": name, "state": str(state), "created": (name, True) in listening.created}
    if secret is not None and args.join_key_file is not None:
        _write_secret(Path(args.join_key_file), secret)
        return told | {"join_key": None, "join_key_file": args.join_key_file, "pairing_uri": None}
    uri = None if secret is None else listening.address.pairing(secret, name).page_uri()
    return told | {"join_key": secret, "join_key_file": None, "pairing_uri": uri}


def _announce(args: argparse.Namespace, listening: "Listening", federations: list[dict[str, object]]) -> None:
    """Print the coordinator's address, its federations, and new join keys, which are shown only once."""
    paths = {f"{role}_token_file": token.path for role, token in listening.tokens.items()}
    files = {name: None if path is None else str(path) for name, path in paths.items()}
    if args.json:
        uri = {"pairing_uri": listening.address.pairing(None, None).page_uri()}
        print(json.dumps({"url": listening.url, **uri, **files, "federations": federations}), flush=True)
        return
    rows = [("coordinator", listening.address.url)]
    if listening.address.pins and not any(told["pairing_uri"] for told in federations):
        rows.append(("for devices", listening.address.pairing(None, None).page_uri()))
    for role, token in listening.tokens.items():
        if not token.is_valid:
            rows.append((f"{role} token", "was revoked; use a named one"))
        elif token.text is None:
            rows.append((f"{role} token", "the one that another worker on this database made"))
        elif token.path is not None:
            rows.append((f"{role} token", f"in {token.path}"))
    for told in federations:
        rows.append(("federation", f"{told['name']}, {told['state']}"))
        if told["join_key"] is not None:
            rows.append(("join key", f"{told['join_key']}  (shown this once)"))
            rows.append(("pairing URI", str(told["pairing_uri"])))
        if told["join_key_file"] is not None:
            rows.append(("join key", f"in {told['join_key_file']}"))
    # In one write: a reader that closes the pipe after the first line must not stop the coordinator.
    print("\n".join([*(f"  {label:<12}  {text}" for label, text in rows), *_codes(args, federations)]), flush=True)


def _codes(args: argparse.Namespace, federations: list[dict[str, object]]) -> list[str]:
    """Return the pairing URIs of new keys as QR codes, where a person can scan them."""
    from coordinator.federations.join_codes import terminal_code
    from edgefl.coordinator_url import is_this_machine

    uris = [str(told["pairing_uri"]) for told in federations if told["pairing_uri"] is not None]
    if args.qr is None:
        uris = [uri for uri in uris if sys.stdout.isatty() and not is_this_machine(uri.partition("#")[0])]
    return [] if args.qr is False else [f"\n{terminal_code(uri)}\n" for uri in uris]


def _check_writable(path: Path) -> None:
    if path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise EdgeFLError(f"{path} cannot be written", fix="Choose a file in an existing, writable folder.")


def _write_secret(path: Path, secret: str) -> None:
    """Write a file that only its owner can read, replacing any existing one."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(secret + "\n")
