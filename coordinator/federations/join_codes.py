"""A join key for people: the command that a device's owner types, and the same command as a QR code."""

import io
import shlex

import segno

from edgefl.coordinator_url import is_this_machine

__all__ = ["join_line", "qr_code"]


def join_line(address: str, key: str) -> str:
    """Return the command with which a device joins; its owner names the data.

    The key is in a variable: other users of the device can read the arguments of its processes.
    """
    is_safe = address.startswith("https:") or is_this_machine(address)
    options = "--data data.npz" if is_safe else "--insecure --data data.npz"
    return f"EDGEFL_JOIN_KEY={shlex.quote(key)} edgefl join {shlex.quote(address)} {options}"


def qr_code(text: str) -> str:
    """Return a text as a QR code, in SVG."""
    out = io.BytesIO()
    # Dark on light with its quiet zone, whatever the page looks like: cameras cannot read light on dark.
    segno.make(text, error="m", micro=False).save(
        out, kind="svg", scale=4, border=4, dark="#000", light="#fff", xmldecl=False
    )
    return out.getvalue().decode("utf-8")
