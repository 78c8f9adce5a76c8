"""A join key for people: the command that a device's owner types, and a pairing code as a QR code."""

import io
import shlex

import segno

from edgefl.coordinator_url import is_this_machine
from edgefl.pairing import Pairing

__all__ = ["join_line", "qr_code", "terminal_code"]

_DARK_ON_LIGHT = "\x1b[30;107m"
_USUAL = "\x1b[0m"
_HALVES = {(False, False): " ", (True, False): "\u2580", (False, True): "\u2584", (True, True): "\u2588"}
_QUIET = 4
"""Modules of light around a code, without which cameras do not find it."""


def join_line(pairing: Pairing) -> str:
    """Return the command with which a device joins; its owner names the data.

    The key is in a variable: other users of the device can read the arguments of its processes.
    """
    is_safe = pairing.url.startswith("https:") or is_this_machine(pairing.url)
    options = "--data data.npz" if is_safe else "--insecure --data data.npz"
    return f"EDGEFL_JOIN_URI={shlex.quote(pairing.page_uri())} edgefl join {options}"


def qr_code(text: str) -> str:
    """Return a text as a QR code, in SVG."""
    out = io.BytesIO()
    # Dark on light with its quiet zone, whatever the page looks like: cameras cannot read light on dark.
    segno.make(text, error="m", micro=False).save(
        out, kind="svg", scale=4, border=_QUIET, dark="#000", light="#fff", xmldecl=False
    )
    return out.getvalue().decode("utf-8")


def terminal_code(text: str) -> str:
    """Return a text as a QR code of characters, two modules in each, black on white whatever the terminal's colours."""
    code = segno.make(text, error="l", micro=False)
    rows = [[bool(module) for module in row] for row in code.matrix_iter(scale=1, border=_QUIET)]
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    pairs = zip(rows[::2], rows[1::2], strict=True)
    lines = ("".join(_HALVES[module] for module in zip(upper, lower, strict=True)) for upper, lower in pairs)
    return "\n".join(f"{_DARK_ON_LIGHT}{line}{_USUAL}" for line in lines)
