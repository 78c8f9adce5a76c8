"""Join keys for people: the line to type and the code to scan."""

from coordinator.federations.join_codes import join_line, qr_code


def test_a_join_line_is_safe_to_paste_and_its_code_is_an_image_without_script() -> None:
    assert join_line("https://10.0.0.5:8443", "edgefl-key-x").startswith(
        "edgefl join https://10.0.0.5:8443 --key edgefl-key-x"
    )
    assert "'https://a;rm -rf ~'" in join_line("https://a;rm -rf ~", "k")
    code = qr_code(join_line("https://10.0.0.5:8443", "edgefl-key-x"))
    assert code.startswith("<svg")
    assert "script" not in code
