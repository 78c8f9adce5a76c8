"""HTML elements, and the one place that escapes: data of a run is text, never markup.

A `Markup` is HTML made here; any other text is escaped when it is put into an element. The Content-Security-Policy of
the pages forbids inline handlers and styles, so attributes are plain names and values.
"""

import html
import json

from edgefl.values import printable

__all__ = ["Markup", "data_block", "element", "joined"]


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | bool | None) -> Markup:
    """Return an element. `class_` means class, underscores become dashes, True is an attribute without a value."""
    words = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        named = name.rstrip("_").replace("_", "-")
        words.append(named if value is True else f'{named}="{html.escape(printable(str(value)))}"')
    return Markup(f"<{' '.join(words)}>{joined(*children)}</{tag}>")


def joined(*children: str) -> Markup:
    """Join children, escaping those that are not markup."""
    return Markup("".join(child if isinstance(child, Markup) else html.escape(printable(child)) for child in children))


def data_block(name: str, value: object) -> Markup:
    """Return JSON in a non-executable script element that its content cannot close."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{html.escape(name)}">{text}</script>')
