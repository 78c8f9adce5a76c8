"""`edgefl inspect FILE`: describe a wire body, a mask, a bundle, a profile or another EdgeFL document."""

import argparse
import codecs
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from edgefl.errors import EdgeFLError, SchemaError

if TYPE_CHECKING:
    from edgefl.artifacts.bundle import Bundle
    from edgefl.model_graph import ModelGraph
    from edgefl.wire import Body, WireSize

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl inspect profile.json
  edgefl inspect update.safetensors
  edgefl inspect --json mask.safetensors
  edgefl inspect exported/cnn4
"""

_GIVE = "Give a file that EdgeFL wrote."
_PIECE = 2**20
_ZIP = b"PK\x03\x04"

Rows = list[tuple[str, str]]


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "inspect",
        help="describe a file: a wire body, a mask, a bundle, a profile",
        description="Describe a file that EdgeFL wrote: a wire body, a mask, a bundle, a device profile, or another\n"
        "document. "
        "Everything in it is checked, including digests.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the file, or a bundle's folder; - reads standard input")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read a file of any kind and print its description."""
    name = "standard input" if args.file == "-" else args.file
    try:
        if args.file != "-" and Path(args.file).is_dir():
            _show_folder(name, args.json)
            return 0
        data = _read(args.file)
        show = _reader(data)
        show(name, data, args.json)
    except EdgeFLError as error:
        raise EdgeFLError(f"{name}: {error.problem}", fix=error.fix) from error
    return 0


def _read(file: str) -> bytes:
    if file == "-":
        return _read_all(sys.stdin.buffer)
    with Path(file).open("rb") as stream:
        return _read_all(stream)


def _read_all(stream: IO[bytes]) -> bytes:
    """Read the stream, but no more than a body can have: /dev/zero never ends."""
    from edgefl.wire import MAX_BODY_BYTES

    pieces = iter(lambda: stream.read(_PIECE), b"")
    held = list(itertools.islice(pieces, MAX_BODY_BYTES // _PIECE + 1))
    if sum(map(len, held)) > MAX_BODY_BYTES:
        raise SchemaError(f"it has more than {MAX_BODY_BYTES:,} bytes, more than any EdgeFL file", fix=_GIVE)
    return b"".join(held)


def _reader(data: bytes) -> Callable[[str, bytes, bool], None]:
    """Return the function that shows data of this kind, recognised by its first bytes."""
    if not data:
        raise SchemaError("it is empty", fix=_GIVE)
    # A body begins with the length of its header, eight bytes whose upper ones are zero, and a JSON object.
    if data[4:8] == bytes(4) and data[8:9] == b"{":
        return _show_body
    if data.startswith(_ZIP):
        return _show_zip
    if _is_text(data):
        return _show_document
    raise SchemaError(
        "it is not an EdgeFL file, neither a body nor UTF-8 text", fix=f"{_GIVE} If it is JSON, save it as UTF-8."
    )


def _is_text(data: bytes) -> bool:
    if b"\0" in data:
        return False
    if data.removeprefix(codecs.BOM_UTF8).startswith((b"{", b"[")):
        return True  # if it is not UTF-8, the JSON reader says where
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _show_document(name: str, data: bytes, as_json: bool) -> None:
    from edgefl.cli.inspect_bundle import sample_rows
    from edgefl.model_graph import ModelGraph
    from edgefl.values import SampleSpec, describe, read, to_json

    value = read(data)
    if as_json:
        print(json.dumps(to_json(value), indent=2))
        return
    kind = to_json(value)["schema"].removeprefix("edgefl.").replace("_", " ").replace("/", ", version ")
    if isinstance(value, ModelGraph):
        rows = _graph_rows(value)
    else:
        rows = sample_rows(value) if isinstance(value, SampleSpec) else describe(value)
    _print_rows(f"{name}: {kind}", rows)


def _show_zip(name: str, data: bytes, as_json: bool) -> None:
    from edgefl.artifacts.bundle import unpack_bundle

    _show_bundle(name, unpack_bundle(data), as_json)


def _show_folder(name: str, as_json: bool) -> None:
    from edgefl.artifacts.bundle import read_bundle

    _show_bundle(name, read_bundle(Path(name)), as_json)


def _show_bundle(name: str, bundle: "Bundle", as_json: bool) -> None:
    from edgefl.cli.inspect_bundle import bundle_json, bundle_rows

    if as_json:
        print(json.dumps(bundle_json(bundle), indent=2))
        return
    _print_rows(f"{name}: bundle, version 1", bundle_rows(bundle))


def _graph_rows(graph: "ModelGraph") -> Rows:
    from edgefl.model_graph import cost_of

    cost = cost_of(graph)
    groups = ", ".join(f"{g.name} {g.width}{f' ({g.fixed})' if g.fixed else ''}" for g in graph.groups)
    return [
        ("model", graph.name),
        ("digest", graph.digest),
        ("parameters", f"{graph.parameters:,} in {len(graph.tensors)} tensors"),
        ("blocks", ", ".join(graph.blocks)),
        ("channel groups", groups),
        ("forward", f"{cost.forward_multiply_adds:,} multiply-adds a sample"),
        ("backward", f"{cost.backward_multiply_adds:,} multiply-adds a sample"),
        ("activations", f"{cost.saved_activations:,} to remember a sample"),
    ]


def _show_body(name: str, data: bytes, as_json: bool) -> None:
    from edgefl.values import digest_of
    from edgefl.wire import BodyKind, decode, measure

    body, size = decode(data), measure(data)
    if as_json:
        print(json.dumps(_body_json(body, size, digest_of(data)), indent=2))
        return
    parameters = sum(math.prod(payload.shape) for payload in body.tensors.values())
    rows = [("digest", digest_of(data)), ("bytes", f"{size.total_bytes:,}, of which header {size.header_bytes:,}")]
    rows += [(key, text.replace("\n", ", ") or "none") for key, text in sorted(body.about.items())]
    if body.seed is not None:
        rows.append(("seed", str(body.seed)))
    if body.kind is not BodyKind.MASK and parameters:
        each = f"{size.bits_per_parameter(parameters):.3f} bits for each, header included"
        rows.append(("parameters", f"{parameters:,}, {each}"))
    _print_rows(f"{name}: {body.kind} body, wire version 1", rows)
    if body.tensors:
        print()
        _print_table(("tensor", "codec", "shape", "content", "bytes"), _tensor_rows(body, size))


def _tensor_rows(body: "Body", size: "WireSize") -> Iterable[Sequence[str]]:
    for name, payload in sorted(body.tensors.items()):
        shape = " x ".join(map(str, payload.shape)) or "scalar"
        yield name, payload.codec, shape, _content(payload), f"{size.tensor_bytes[name]:,}"


def _content(payload: Any) -> str:
    from edgefl.wire import Bits, Counts, Dense, Slice, Sparse

    entries = math.prod(payload.shape)
    match payload:
        case Dense():
            return f"{entries:,} of {payload.array.dtype}"
        case Slice() | Sparse():
            return f"{payload.values.size:,} of {entries:,}, {payload.values.dtype}"
        case Bits():
            return f"{payload.ones():,} of {entries:,} set"
        case Counts():
            return f"{entries:,} from 0 to {payload.limit}"
    raise TypeError(payload)


def _body_json(body: "Body", size: "WireSize", digest: str) -> dict[str, Any]:
    tensors = {
        name: {"codec": payload.codec, "shape": payload.shape, "bytes": size.tensor_bytes[name]}
        for name, payload in sorted(body.tensors.items())
    }
    return {
        "kind": str(body.kind),
        "digest": digest,
        "total_bytes": size.total_bytes,
        "header_bytes": size.header_bytes,
        "seed": None if body.seed is None else str(body.seed),
        "about": dict(body.about),
        "tensors": tensors,
    }


def _print_rows(title: str, rows: Rows) -> None:
    from edgefl.values import printable

    shown = [(printable(label), printable(text)) for label, text in rows]
    width = max((len(label) for label, _ in shown), default=0)
    print(printable(title))
    for label, text in shown:
        print(f"  {label:<{width}}  {text}")


def _print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from edgefl.values import printable

    lines = [[printable(cell) for cell in line] for line in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = [text.ljust(width) for text, width in zip(line[:-1], widths[:-1], strict=True)]
        print("  " + "  ".join([*cells, line[-1].rjust(widths[-1])]))
