"""How a printed command is made small enough for a test, and which commands are only parsed, with the reason.

Of an option that is given twice the last one counts, so most commands are run as printed, with a few words after them.
Everything that is changed is in this file.
"""

import re
from collections.abc import Sequence

__all__ = ["NOT_RUN", "made_small", "reason_not_to_run"]

NOT_RUN: tuple[tuple[str, str], ...] = (
    (r"^edgefl conformance serve", "waits for a client, for a minute; tests/conformance leads one"),
    (r"^edgefl join .*--(hours|mains-only)", "waits for hours, temperature or power of a real device"),
    (r"^edgefl (join|fed list) .*coordinator\.local", "needs TLS on another host; tests/cli/test_serve.py has it here"),
    (r"^edgefl serve .*--(certificate|host)", "listens to other machines; tests/cli/test_pairing.py serves with TLS"),
    (r"edgefl join -", "reads standard input; tests/cli/test_pairing.py has it"),
    (r"^edgefl certificate", "needs a coordinator with its own certificate; tests/cli/test_pairing.py has it"),
    (r"^edgefl serve .*postgresql:", "needs a database server and an S3 store; tests/coordinator has both"),
    (
        r"^edgefl simulate .*--engine ray",
        "starts a Ray cluster, for ten seconds or more; tests/cli/test_simulate.py does",
    ),
    (r"^edgefl export .*--int8.*executorch", "takes half a minute of torch; tests/cli/test_export.py does it"),
    (r"^edgefl export .*--programs", "compiles for minutes; tests/cli/test_export_programs.py compiles a small model"),
    (r"^edgefl compile", "compiles until it is stopped; tests/cli/test_compile.py has it"),
    (
        r"^edgefl profile .*--engine (all|executorch)",
        "loads torch; tests/device_runtime/profiler measures both",
    ),
    (r"^edgefl join .*--engine", "measures engines that may not be here; tests/cli/test_join_engine.py has it"),
)
"""Commands that are parsed and not run: a pattern, and why."""

_SIMULATE = "--model digits_mlp --data digits --rounds 1 --most-steps 1 --workers 1 --quiet"
_RACE = "--turns 2 --warm-up 1 --energy-seconds 0 --engine onnx --threads 1"
_OWN = ["--model", "examples.coordinator.digits_cnn:digits_cnn", "--input", "1,8,8"]

_APPENDED: tuple[tuple[str, str], ...] = (
    (r"^edgefl profile", "--seconds 3 --threads 1 --bundle exported/cnn4"),
    (r"^edgefl simulate .*exported", "--rounds 1 --most-steps 1 --workers 1 --quiet"),
    (r"^edgefl simulate .*exact_head", f"{_SIMULATE} --rounds 2"),
    (r"^edgefl simulate .*--over http", f"{_SIMULATE} --devices 2 --no-personal"),
    (r"^edgefl simulate .*--devices \d{4}", f"{_SIMULATE} --devices 200 --no-personal"),
    (r"^edgefl simulate .*--availability", f"{_SIMULATE} --devices 4 --buffer 2"),
    (r"^edgefl simulate", _SIMULATE),
    (r"^edgefl bench infer .*--file", _RACE.replace("--engine onnx ", "")),
    (r"^edgefl bench infer", f"{_RACE} --form dense,sparse"),
    (r"^edgefl bench train", f"{_RACE} --batch 4"),
    (r"^edgefl bench wire", "--turns 2"),
    (r"^edgefl bench plan", "--devices 3 --method sequential"),
    (r"^edgefl bench coordinator", "--devices 2 --rounds 1 --start 0 --train 0"),
    (r"^edgefl join", "--tasks 1 --threads 1 --profile pi.json"),
    (r"^edgefl serve", "--port 0 --json --state served"),
)
"""What is added at the end, for the first pattern that fits: fewer rounds, steps, turns and devices."""


def reason_not_to_run(text: str) -> str | None:
    """Return why a command is only parsed; None where it is run."""
    return next((reason for pattern, reason in NOT_RUN if re.search(pattern, text)), None)


def made_small(words: Sequence[str]) -> list[str]:
    """Return a command that does the same on less: a small model, little data, few turns."""
    text, verb = " ".join(words), list(words[1:2])
    small = [word.replace("$i", "1").replace("fashion-mnist", "digits") for word in words]
    small = [word for word in small if word != "--watch"]  # which goes on until the federation ends
    if verb == ["export"] and "--model" in words and "examples." not in text:
        small = _with_own_model(small)
    elif verb == ["bench"] and words[2] in ("infer", "train", "wire"):
        small = [word for word in small if word not in ("vgg16", "cnn4")]
        small += [] if "--bundle" in small or "--file" in small else ["--bundle", "exported/cnn4"]
    appended = next((more for pattern, more in _APPENDED if re.search(pattern, text)), "")
    return [*small, *appended.split()]


def _with_own_model(words: list[str]) -> list[str]:
    """Return an export of a small network in place of a large one."""
    for option in ("--model", "--input"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    names = {"stem,block1": "0"}
    return [names.get(word, word) for word in words] + _OWN
