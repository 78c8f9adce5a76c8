"""How commands are found in a document: or a test that runs them all might run none."""

from pathlib import Path

import pytest

from tests.documents.commands import commands_in
from tests.documents.small import made_small, reason_not_to_run

PAGE = """\
Say `edgefl plan` in a sentence.

    edgefl fed key digits --label "the lab"      shown once
    edgefl export --model cnn4 \\
        --out exported/cnn4
    pip install '.[device]'

```sh
edgefl fed create a.toml && edgefl fed start a   # both
edgefl join http://x --home device$i &
edgefl completion bash > file
```

```python
edgefl = 1
```

```console
$ edgefl data list
edgefl is not a command in a sentence, but a line of output is taken for one
```
"""


def test_commands_are_found_in_fences_and_indented_blocks(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    found = commands_in(tmp_path / "page.md")
    assert [(command.line, " ".join(command.words)) for command in found[:7]] == [
        (3, "edgefl fed key digits --label the lab"),
        (4, "edgefl export --model cnn4 --out exported/cnn4"),
        (9, "edgefl fed create a.toml"),
        (9, "edgefl fed start a"),
        (10, "edgefl join http://x --home device$i"),
        (11, "edgefl completion bash"),
        (19, "edgefl data list"),
    ]


@pytest.mark.parametrize(
    ("printed", "small"),
    [
        ("edgefl inspect pi.json", "edgefl inspect pi.json"),
        ("edgefl bench wire cnn4", "edgefl bench wire --bundle exported/cnn4 --turns 2"),
        ("edgefl fed status digits --watch", "edgefl fed status digits"),
        ("edgefl serve a.toml --port 80", "edgefl serve a.toml --port 80 --port 0 --json --state served"),
        (
            "edgefl export --model vgg16 --freeze stem,block1 --out a",
            "edgefl export --freeze 0 --out a --model examples.coordinator.digits_cnn:digits_cnn --input 1,8,8",
        ),
    ],
)
def test_a_command_is_made_small(printed: str, small: str) -> None:
    assert made_small(tuple(printed.split())) == small.split()


def test_commands_that_are_not_run_have_a_reason() -> None:
    assert reason_not_to_run("edgefl simulate --engine ray --devices 4")
    assert reason_not_to_run("edgefl simulate --devices 4") is None
