"""Send thousands of damaged and forged updates to a real coordinator: each is refused with advice, and changes nothing.

    python -m tests.coordinator.mutations --count 10000

Some are damaged as a network damages them: bits, bytes and ends. Most are forged with a right digest, so that they get
past the envelope: other tensors, shapes, types and codecs, numbers that are none, reports of other tasks and rounds,
absurd samples, masks that are not the model's, JSON that is not JSON. They are sent plain, in chunks or compressed, and
some of the compressed ones are damaged after that. What the database and the blob store hold is compared before and
after.
"""

import argparse
import collections
import contextlib
import gzip
import json
import random
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import sqlalchemy

from coordinator.http.server_settings import ServerLimits
from edgefl.wire import BodyKind, decode
from edgefl.wire.byte_shuffle import pack
from edgefl.wire.envelope import header_bytes, seal
from tests.coordinator.http.site import Site, serving

Parts = dict[str, Any]
LIMITS = ServerLimits(requests_rate=1e9, requests_burst=10**9, failures_rate=1e9, failures_burst=10**9)


def forged(body: bytes, chance: random.Random) -> bytes:
    """Return a body with a right digest that no device would send."""
    text, parts = _opened(body)
    change: Callable[[dict[str, Any], Parts, random.Random], None] = chance.choice(
        [_change_tensor, _change_tensor, _change_names, _change_report, _change_report, _change_text, _change_codecs]
    )
    change(text, parts, chance)
    written = text.get("raw") or json.dumps(text)
    try:
        return seal(written, parts)
    except Exception:  # not even the envelope takes it: damage it instead
        return damaged(body, chance)


def damaged(body: bytes, chance: random.Random) -> bytes:
    """Return a body as a bad network leaves it."""
    data = bytearray(body)
    way = chance.randrange(6)
    if way == 0:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif way == 1:
        del data[chance.randrange(len(data)) :]
    elif way == 2:
        data += chance.randbytes(chance.randint(1, 64))
    elif way == 3:
        start = chance.randrange(len(data))
        data[start : start + chance.randint(1, 4096)] = chance.randbytes(chance.randint(0, 4096))
    elif way == 4:
        position = chance.randrange(min(header_bytes(body), len(data), 5000))
        data[position] = chance.randrange(256)
    else:
        data = bytearray(chance.randbytes(chance.randrange(3000)))
    return bytes(data)


def dressed(body: bytes, chance: random.Random) -> tuple[dict[str, str], Any]:
    """Return the headers and the content with which a body is sent: most often as it is."""
    way = chance.random()
    if way < 0.6:
        return {}, body
    if way < 0.7:
        size = chance.randint(100, 5000)
        return {}, (body[begin : begin + size] for begin in range(0, len(body), size))
    planes = way < 0.85
    packed = pack(body) if planes else gzip.compress(body, 1)
    if chance.random() < 0.3:
        packed = damaged(packed, chance)
    return {"Content-Encoding": "edgefl-planes, gzip" if planes else "gzip"}, packed


def _opened(body: bytes) -> tuple[dict[str, Any], Parts]:
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + length])
    text = json.loads(header["__metadata__"]["edgefl"].partition(" ")[2])
    return text, decode(body, kind=BodyKind.UPDATE).arrays


def _change_tensor(text: dict[str, Any], parts: Parts, chance: random.Random) -> None:
    name = chance.choice(sorted(parts))
    array = parts[name]
    ways: list[Callable[[], Any]] = [
        lambda: np.full_like(array, np.nan) if array.dtype.kind == "f" else array.reshape(-1)[:0],
        lambda: np.full_like(array, np.inf) if array.dtype.kind == "f" else array.astype(np.int32),
        lambda: np.full_like(array, 1e30) if array.dtype.kind == "f" else array.astype(np.float32),
        lambda: array.astype(np.float64) if array.dtype != np.float64 else array.astype(np.float32),
        lambda: array.astype(np.float16),
        lambda: array.reshape(-1)[:-1],
        lambda: array.reshape(1, *array.shape),
        lambda: np.zeros(0, array.dtype),
        lambda: np.zeros((2**10, 2**4), array.dtype),
    ]
    parts[name] = chance.choice(ways)()


def _change_names(text: dict[str, Any], parts: Parts, chance: random.Random) -> None:
    name = chance.choice(sorted(parts))
    way = chance.randrange(4)
    if way in (0, 1):
        array = parts.pop(name)
        if way == 1:
            parts[chance.choice(["", "../etc/passwd", "0.weight\0", "kept/0", "held/0.weight", "x" * 300, "#0"])] = (
                array
            )
    elif way == 2:
        parts["another"] = parts[name]
    else:
        parts.clear()


def _change_report(text: dict[str, Any], parts: Parts, chance: random.Random) -> None:
    report = json.loads(text["about"]["result"])
    field = chance.choice([*report, "telemetry.latency.p50_step_seconds", "telemetry.memory.peak_bytes"])
    absurd = [-1, 2**70, 1e308, "NaN", None, [], {}, "digits-0-somebody", "\u0000", True, [[[[]]]], "x" * 5000, -0.5]
    *path, last = field.split(".")
    inner = report
    for part in path:
        inner = inner[part]
    if chance.random() < 0.15:
        inner.pop(last)
    else:
        inner[last] = chance.choice([value for value in absurd if value != inner[last]])
    if chance.random() < 0.1:
        inner["unknown"] = 1
    text["about"]["result"] = json.dumps(report)
    if report.get("telemetry") and field in ("samples", "steps", "accuracy", "metrics", "loss"):
        parts.pop(sorted(parts)[0])  # some other report would be as good: spoil the tensors too


def _change_text(text: dict[str, Any], parts: Parts, chance: random.Random) -> None:
    ways: list[Callable[[], Any]] = [
        lambda: text.update(wire=chance.choice([0, 2, "1", None, True])),
        lambda: text.update(kind=chance.choice(["weights", "mask", "", 3])),
        lambda: text["about"].update(model="sha256:" + "0" * 64),
        lambda: text["about"].update(mask="sha256:" + "0" * 64),
        lambda: text["about"].update(next_mask="sha256:" + "0" * 64, trained="0"),
        lambda: text["about"].pop(chance.choice(["result", "model", "mask"])),
        lambda: text.update(about=chance.choice([[], None, "x", {"a": 1}])),
        lambda: text.update(seed=chance.choice([-1, "2e3", "9" * 40, 5])),
        lambda: text.update(raw=chance.choice(["{", "[]", "null", '{"wire": 1, "wire": 1}', "[" * 5000, "1e999"])),
    ]
    chance.choice(ways)()


def _change_codecs(text: dict[str, Any], parts: Parts, chance: random.Random) -> None:
    name = chance.choice(sorted(parts))
    entries = [
        ["bits", [8]],
        ["bitmap", [4, 4]],
        ["deltas", [2**31, 2**31]],
        ["slice", list(parts[name].shape), [0] * parts[name].ndim],
        ["counts", [3], 2],
        ["unknown"],
        [],
        None,
        {"a": 1},
    ]
    text["codecs"] = {name: chance.choice(entries)}


def contents(site: Site, folder: Path) -> Any:
    """Return everything that the coordinator holds, apart from when it last heard of a device."""
    engine = sqlalchemy.create_engine(f"sqlite:///{folder / 'coordinator.db'}")
    tables = sqlalchemy.MetaData()
    tables.reflect(engine)
    held: dict[str, Any] = {}
    with engine.connect() as connection:
        for table in tables.sorted_tables:
            columns = [column for column in table.columns if column.name != "seen_at"]
            held[table.name] = sorted(map(repr, connection.execute(sqlalchemy.select(*columns))))
    engine.dispose()
    files = sorted(path.name for path in (folder / "blobs" / "content").iterdir())
    with contextlib.closing(sqlite3.connect(folder / "blobs" / "small.sqlite")) as small:
        files += sorted(row[0] for row in small.execute("SELECT name FROM bodies"))
    held.pop("leases")  # which worker does what
    return held, files


def run(folder: Path, count: int, seed: int, say: Callable[[int], None] = lambda done: None) -> tuple[Any, list[str]]:
    """Send mutated updates; return how often each status came, and what went wrong."""
    chance, statuses, problems = random.Random(seed), collections.Counter[int](), []
    with serving(folder, LIMITS) as site:
        site.federation()
        token = site.device("pi")
        (task,) = site.open_round("pi")
        body = site.update(task, shift=0.01)
        before = contents(site, folder)
        client = site.client(token)
        for number in range(count):
            sent = body
            while sent == body:
                sent = (forged if chance.random() < 0.75 else damaged)(body, chance)
            headers, content = dressed(sent, chance)
            answer = client.put(f"/v1/tasks/{task}/result", content=content, headers=headers)
            statuses[answer.status_code] += 1
            problem = _problem(answer)
            if problem:
                problems.append(f"update {number}: {problem}")
            say(number + 1)
        if contents(site, folder) != before:
            problems.append("what the coordinator holds has changed")
        if client.put(f"/v1/tasks/{task}/result", content=body).status_code != 200:
            problems.append("after all this, the right update is not taken any more")
    return statuses, problems


def _problem(answer: httpx.Response) -> str | None:
    if not 400 <= answer.status_code < 500:
        return f"status {answer.status_code}: {answer.text[:200]}"
    try:
        said = answer.json()["error"]
        clear = len(said["problem"]) > 5 and len(said["fix"]) > 5 and "Traceback" not in answer.text
    except (ValueError, KeyError, TypeError):
        clear = False
    return None if clear else f"unclear answer {answer.text[:200]}"


def main() -> int:
    """Run, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    def say(done: int) -> None:
        if done % 100 == 0:
            sys.stderr.write(f"\r{done} of {args.count} updates")

    with tempfile.TemporaryDirectory() as folder:
        statuses, problems = run(Path(folder), args.count, args.seed, say)
    sys.stdout.write(f"\n{args.count} updates, answers {dict(statuses)}, {len(problems)} problems\n")
    for problem in problems[:20]:
        sys.stdout.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
