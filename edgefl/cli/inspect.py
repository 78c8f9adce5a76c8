"""`edgefl inspect FILE`: say in words what a file is: a wire body, a mask, a profile or any other document."""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.errors import SchemaError

if TYPE_CHECKING:
    from edgefl.model_graph import ModelGraph
    from edgefl.wire import Body, WireSize

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl inspect profile.json
  edgefl inspect update.safetensors
  edgefl inspect --json mask.safetensors
"""

Rows = list[tuple[str, str]]


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "inspect",
        help="say in words what a file is: a wire body, a mask, a profile",
        description="Say in words what a file is: a wire body, a mask, a device profile, or another document of\n"
        "EdgeFL. Everything in the file is checked on the way, digests included.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the file to look at; - reads standard input")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the file, whatever it is, and print what it is."""
    data = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    name = "standard input" if args.file == "-" else args.file
    if not data:
        raise SchemaError(f"{name} is empty", fix="Give a file that EdgeFL wrote.")
    # A body begins with a header length of eight bytes, the upper ones zero; no JSON text holds a zero byte.
    show = _show_body if 0 in data[:8] else _show_document
    show(name, data, args.json)
    return 0


def _show_document(name: str, data: bytes, as_json: bool) -> None:
    from edgefl.model_graph import ModelGraph
    from edgefl.values import describe, read, to_json

    value = read(data)
    if as_json:
        print(json.dumps(to_json(value), indent=2))
        return
    kind = to_json(value)["schema"].removeprefix("edgefl.").replace("_", " ").replace("/", ", version ")
    rows = _graph_rows(value) if isinstance(value, ModelGraph) else describe(value)
    _print_rows(f"{name}: {kind}", rows)


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
    from edgefl.wire import Kind, decode, measure

    body, size = decode(data), measure(data)
    if as_json:
        print(json.dumps(_body_json(body, size, digest_of(data)), indent=2))
        return
    parameters = sum(math.prod(payload.shape) for payload in body.tensors.values())
    rows = [("digest", digest_of(data)), ("bytes", f"{size.total_bytes:,}, of which header {size.header_bytes:,}")]
    rows += [(key, text.replace("\n", ", ") or "none") for key, text in sorted(body.about.items())]
    if body.seed is not None:
        rows.append(("seed", str(body.seed)))
    if body.kind is not Kind.MASK and parameters:
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
    width = max((len(label) for label, _ in rows), default=0)
    print(title)
    for label, text in rows:
        print(f"  {label:<{width}}  {text}")


def _print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = [text.ljust(width) for text, width in zip(line[:-1], widths[:-1], strict=True)]
        print("  " + "  ".join([*cells, line[-1].rjust(widths[-1])]))
