"""The example of docs/android.md: the core in an app of one's own."""

import re
import subprocess
from pathlib import Path

from tests.android_demo.conftest import ROOT


def test_the_example_of_the_core_in_an_app_compiles(client_jar: Path, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "android.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```java\n(.*?)```", text, flags=re.DOTALL)
    source = tmp_path / "MyDevice.java"
    source.write_text(example, encoding="utf-8")
    command = ["javac", "--release", "17", "-Xlint:all", "-Werror", "-cp", str(client_jar), "-d", str(tmp_path)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "MyDevice.class").exists()
