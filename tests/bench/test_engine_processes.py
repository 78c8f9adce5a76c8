"""Races: turns are interleaved, the warm-up is thrown away, and who cannot start is named."""

from typing import Any, cast

import pytest

from edgefl.bench.engine_processes import EngineProcess, run_interleaved, started_processes
from edgefl.bench.measurements import EngineMeasurement, MeasuringTime, measure_processes, noise_notes, source_notes
from edgefl.bench.timing import Times
from edgefl.errors import EdgeFLError

STUB = "tests.bench.stub_worker"


class Told:
    """A racer whose runs take what it is told, and who notes when it ran."""

    def __init__(self, name: str, log: list[str], seconds: list[float]) -> None:
        self._name, self._log, self._seconds = name, log, iter(seconds)

    def run(self) -> float:
        self._log.append(self._name)
        return next(self._seconds)


def test_turns_are_interleaved_and_the_warm_up_is_thrown_away() -> None:
    log: list[str] = []
    processes = {"a": Told("a", log, [9, 9, 1, 2]), "b": Told("b", log, [8, 8, 3, 4])}
    found = run_interleaved(cast(dict[str, EngineProcess], processes), turns=2, warm_up=2)
    assert found == {"a": Times((1, 2)), "b": Times((3, 4))}
    assert "".join(log) == "abbaabba"


def test_who_works_is_measured_and_who_cannot_start_is_named_with_the_reason() -> None:
    commands = {mode: [STUB, mode] for mode in ("works", "blocked", "refuses", "dies")}
    found, missing = measure_processes(commands, MeasuringTime(turns=3, warm_up=1, energy_seconds=0.01))
    assert list(found) == ["works"]
    assert "'torch' cannot be imported" in missing["blocked"]
    assert missing["refuses"] == "the file is bad. Give another."
    assert "a last word" in missing["dies"]
    works = found["works"].figures()
    assert works["seconds"]["turns"] == 3
    assert works["runs_on"] == "a stub"
    assert works["memory"]["peak_bytes"] - works["memory"]["baseline_bytes"] == works["memory"]["beyond_bytes"]
    assert works["energy"]["runs"] >= 2
    assert works["energy"]["lowest_each"] <= works["energy"]["joules_each"] <= works["energy"]["highest_each"]
    labels = source_notes(found)
    assert [label.partition(":")[0] for label in labels] == ["memory", "energy"]
    assert works["energy"]["provenance"] in labels[1]
    assert works["energy"]["source"] in labels[1]


def test_a_racer_that_is_asked_for_nonsense_says_so_and_lives_on() -> None:
    with started_processes({"works": [STUB, "works"]}) as field:
        process = field.processes["works"]
        with pytest.raises(EdgeFLError, match="cannot do 'dance'"):
            process.ask("dance")
        assert process.run() >= 0
        assert process.ask("evaluate", file="x") == {"right": 0.5}


def test_a_ratio_that_means_little_is_pointed_out_but_not_that_of_a_baseline_to_itself() -> None:
    one, noisy = (EngineMeasurement(Times(seconds), {}, {}) for seconds in ((1.0, 1.0, 1.0), (1.0, 3.0, 1.2)))
    rows: list[dict[str, Any]] = [
        {"name": "one", "time": one.ratio_to(one, "one")},
        {"name": "noisy", "time": noisy.ratio_to(one, "one")},
        {"name": "alone", "time": None},
    ]
    (note,) = noise_notes(rows, "time")
    assert note.startswith("noisy: 1.20x is too noisy")


@pytest.mark.parametrize(
    ("changes", "said"), [({"turns": 1}, "--turns is 1"), ({"threads": 0}, "--threads"), ({"warm_up": 0}, "--warm-up")]
)
def test_a_pace_that_measures_nothing_is_refused(changes: dict[str, int], said: str) -> None:
    with pytest.raises(EdgeFLError, match=said):
        MeasuringTime(**({"turns": 3} | changes))
