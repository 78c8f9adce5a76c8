"""A join key for people: the line that a device's owner types, and the same line as a code for a phone's camera."""

import io
import shlex

import segno

__all__ = ["join_line", "qr_code"]


def join_line(address: str, key: str) -> str:
    """Return the command that lets a device join; its owner says which data it has."""
    return f"edgefl join {shlex.quote(address)} --key {shlex.quote(key)} --data data.npz"


def qr_code(text: str) -> str:
    """Return a text as a QR code, in SVG."""
    out = io.BytesIO()
    # Dark on light with its quiet zone, whatever the page looks like: cameras do not read the other way round.
    segno.make(text, error="m", micro=False).save(
        out, kind="svg", scale=4, border=4, dark="#000", light="#fff", xmldecl=False
    )
    return out.getvalue().decode("utf-8")
