"""Join keys for people: the line to type and the code to scan."""

import shlex

import segno

from coordinator.federations.join_codes import join_line, qr_code, terminal_code
from edgefl.pairing import Pairing

KEY = "edgefl-key-x"
PIN = "sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
PAIRING = Pairing("https://10.0.0.5:8443", KEY, "digits", (PIN,))


def test_a_join_line_is_safe_to_paste_and_its_code_is_an_image_without_script() -> None:
    line = join_line(PAIRING)
    uri = f"https://10.0.0.5:8443/join#key={KEY}&federation=digits&pin={PIN}"
    assert line == f"EDGEFL_JOIN_URI='{uri}' edgefl join --data data.npz"
    code = qr_code(uri)
    assert code.startswith("<svg")
    assert "script" not in code


def test_the_key_is_no_argument_of_the_command_that_is_shown() -> None:
    words = shlex.split(join_line(PAIRING))
    assert [word for word in words[words.index("edgefl") :] if KEY in word] == []


def test_a_line_for_a_coordinator_without_tls_says_that_it_is_insecure() -> None:
    assert "--insecure" in join_line(Pairing("http://10.0.0.5:8000", KEY))
    assert "--insecure" not in join_line(Pairing("http://127.0.0.1:8000", KEY))


def test_a_code_of_characters_has_every_module_black_on_white_with_a_quiet_zone() -> None:
    text = PAIRING.page_uri()
    lines = terminal_code(text).split("\n")
    assert all(line.startswith("\x1b[30;107m") and line.endswith("\x1b[0m") for line in lines)
    cells = [line.removeprefix("\x1b[30;107m").removesuffix("\x1b[0m") for line in lines]
    dark = [[cell in upper for cell in line] for line in cells for upper in ("\u2580\u2588", "\u2584\u2588")]
    expected = [
        [bool(module) for module in row] for row in segno.make(text, error="l", micro=False).matrix_iter(border=4)
    ]
    assert dark[: len(expected)] == expected
    assert not any(any(row) for row in dark[len(expected) :])
    assert len(cells[0]) <= 79, "so that it fits into a terminal"
