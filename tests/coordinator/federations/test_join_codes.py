"""Join keys for people: the line to type and the code to scan."""

import shlex

from coordinator.federations.join_codes import join_line, qr_code


def test_a_join_line_is_safe_to_paste_and_its_code_is_an_image_without_script() -> None:
    line = join_line("https://10.0.0.5:8443", "edgefl-key-x")
    assert line == "EDGEFL_JOIN_KEY=edgefl-key-x edgefl join https://10.0.0.5:8443 --data data.npz"
    assert "'https://a;rm -rf ~'" in join_line("https://a;rm -rf ~", "k")
    code = qr_code(line)
    assert code.startswith("<svg")
    assert "script" not in code


def test_the_key_is_no_argument_of_the_command_that_is_shown() -> None:
    line = join_line("https://10.0.0.5:8443", "edgefl-key-x")
    words = shlex.split(line)
    assert [word for word in words[words.index("edgefl") :] if "edgefl-key-x" in word] == []


def test_a_line_for_a_coordinator_without_tls_says_that_it_is_insecure() -> None:
    assert "--insecure" in join_line("http://10.0.0.5:8000", "k")
    assert "--insecure" not in join_line("http://127.0.0.1:8000", "k")
