"""LEAF's 80 characters: text to small integers, one per character.

Characters outside the alphabet never fail and never shift a window: typographic forms become plain ones (curly quotes,
dashes, accented letters), and anything else becomes a space, as in LEAF.
"""

import unicodedata

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALPHABET", "WINDOW", "encode", "as_class_names"]

# LEAF's order (github.com/TalwalkarLab/leaf), so that indices agree with models trained there.
ALPHABET = "\n !\"&'(),-.0123456789:;>?" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "[]" + "abcdefghijklmnopqrstuvwxyz" + "}"
WINDOW = 80

_INDEX = {character: index for index, character in enumerate(ALPHABET)}
_PLAIN = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2013": "-",
    "\u2014": "-",
    "\t": " ",
    "\u00e6": "a",
    "\u0153": "o",
    "{": "[",
}


def _index(code: int) -> int:
    character = chr(code)
    plain = _PLAIN.get(character) or unicodedata.normalize("NFKD", character)[0]
    return _INDEX.get(plain, _INDEX[" "])


def encode(text: str) -> NDArray[np.uint8]:
    """Return one index into the alphabet per character."""
    # surrogatepass: half a surrogate pair from JSON is just another unknown character
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    known, where = np.unique(codes, return_inverse=True)
    table = np.array([_index(int(code)) for code in known], dtype=np.uint8)
    return table[where.reshape(-1)] if len(codes) else np.empty(0, dtype=np.uint8)


def as_class_names() -> tuple[str, ...]:
    """Return the characters in printable form."""
    return tuple({"\n": "\\n", " ": "space"}.get(character, character) for character in ALPHABET)
