"""The study of `benchmarks.accuracy`: entries can be run, finished runs are found again, claims are judged right."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import accuracy
from benchmarks.accuracy_study.claims import CLAIMS, judged
from benchmarks.accuracy_study.data import dataset_of, shrunk
from benchmarks.accuracy_study.entries import Entry, Limit, entries_of, levels_for, settings_in
from benchmarks.accuracy_study.figures import MEASURES, Figures, figures_of
from benchmarks.accuracy_study.ledger import Ledger
from benchmarks.accuracy_study.report import write_report
from benchmarks.accuracy_study.run import Run, run
from benchmarks.accuracy_study.setups import FULL, QUICK, Setup
from edgefl.artifacts.submodel import bundle_weights
from edgefl.data import Samples
from edgefl.local_rules.ordered_dropout import parse_levels
from edgefl.masks import Mask, kept_width
from edgefl.strategies import STRATEGIES, strategy_of
from edgefl.wire import encode_weights
from examples.networks import cnn4
from tests.device_runtime.federation import BUNDLE, bundle

SMALL = replace(QUICK["digits"], model="small_cnn", rounds=2, per_round=3, clients=6, epochs=1)


def entry(label: str = "fedavg") -> Entry:
    return Entry(setup="digits", label=label, strategy=label.split()[0])


def result(setup: str, label: str, seed: int = 0, **changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = dict.fromkeys(MEASURES, 1.0)
    return plain | {"setup": setup, "label": label, "seed": seed, "refused": [], "extracted": {}} | changes


def models(folder: Path) -> Path:
    (folder / "small_cnn.zip").write_bytes(BUNDLE.read_bytes())
    (folder / "small_cnn-0.safetensors").write_bytes(encode_weights(bundle_weights(bundle()), {}))
    return folder


@pytest.mark.parametrize("study", [QUICK, FULL], ids=["quick", "full"])
def test_every_entry_is_a_strategy_with_settings_that_it_knows(study: dict[str, Setup]) -> None:
    entries = entries_of(list(study))
    for one in entries:
        strategy_of(one.strategy, settings_in(study[one.setup], one))
    assert {one.strategy for one in entries} == set(STRATEGIES), "a new strategy is at least run on the digits"
    assert len({(one.setup, one.label) for one in entries}) == len(entries)


def test_a_run_gives_every_figure_and_is_found_again(tmp_path: Path) -> None:
    wanted, ledger = Run(SMALL, entry(), 0, models(tmp_path)), Ledger(tmp_path / "runs")
    assert ledger.known(wanted) is None
    found = run(wanted)
    assert "error" not in found
    assert all(found[name] is not None for name in MEASURES)
    assert [point["round"] for point in found["curve"]] == [1, 2]
    ledger.keep(wanted, found)
    assert ledger.known(wanted) == found
    assert ledger.known(replace(wanted, setup=replace(SMALL, rounds=3))) is None, "another question"
    assert ledger.known(replace(wanted, seed=1)) is None


def test_a_run_that_fails_says_why_and_is_tried_again(tmp_path: Path) -> None:
    wanted = Run(SMALL, replace(entry(), settings={"nonsense": 1}), 0, models(tmp_path))
    found = run(wanted)
    assert "nonsense" in found["error"]
    ledger = Ledger(tmp_path / "runs")
    ledger.keep(wanted, found)
    assert ledger.known(wanted) is None
    (figure,) = figures_of([found]).values()
    assert figure.seeds == 0
    assert "nonsense" in figure.problems[0]


def test_figures_are_means_and_deviations_over_seeds() -> None:
    runs = [result("digits", "fedavg", seed, accuracy=value) for seed, value in enumerate((0.8, 0.9, 1.0))]
    value = figures_of(runs)["digits", "fedavg"].values["accuracy"]
    assert value.mean == pytest.approx(0.9)
    assert value.deviation == pytest.approx(0.1)


def uplinks(fedmrn: float, bits: float) -> Figures:
    return figures_of(
        [
            result("uplink", "fedavg", accuracy=0.90, up_bytes=2600.0),
            result("uplink", "fedmrn", accuracy=fedmrn, up_bytes=bits),
            result("uplink", "signsgd", accuracy=0.85),
            result("uplink", "topk", accuracy=0.80),
        ]
    )


@pytest.mark.parametrize(
    ("fedmrn", "bits", "held"),
    [(0.891, 100.0, [True] * 4), (0.889, 100.0, [False, True, True, True]), (0.84, 101.0, [False, False, True, False])],
)
def test_fedmrns_claims_are_judged_by_its_paper(fedmrn: float, bits: float, held: list[bool]) -> None:
    assert [verdict.held for verdict in judged(uplinks(fedmrn, bits))] == held


def test_a_claim_about_what_was_not_run_is_left_out() -> None:
    assert judged(figures_of([result("freezing", "fedavg")])) == []


def test_a_difference_deviates_as_much_as_seeds_do_compared_with_themselves() -> None:
    # Seeds differ by tens of points, and PerFedMask's masks are 1, 2 and 3 points better in each.
    runs = [
        result("freezing", label, seed, after=base + better * (seed + 1) / 100)
        for label, better in (("perfedmask", 1), ("perfedmask random", 0))
        for seed, base in enumerate((0.5, 0.7, 0.9))
    ]
    (verdict,) = judged(figures_of(runs))
    assert verdict.held
    assert verdict.figures == "72.0 against 70.0, +2.0 ±1.0"


@pytest.mark.parametrize(("share", "held"), [(0.5, True), (0.55, False)])
def test_fedspa_is_judged_by_half_of_the_bytes(share: float, held: bool) -> None:
    runs = [result("weights", "fedspa", up_bytes=1000 * share), result("weights", "fedavg", up_bytes=1000.0)]
    *_, verdict = judged(figures_of(runs))
    assert verdict.held == held
    assert f"{100 * share:.1f} %" in verdict.figures


def test_levels_make_parts_as_large_as_the_capacities() -> None:
    graph = cnn4()
    capacities = (1.0, 0.25, 0.0625)
    levels = parse_levels(levels_for(graph, capacities))
    assert levels[0] == 1
    for level, capacity in zip(levels, capacities, strict=True):
        shares = []
        for width in (level, level + 0.001):
            kept = {group.name: range(kept_width(group, min(width, 1))) for group in graph.groups}
            shares.append(Mask.of(graph, kept=kept).cost.parameters / graph.parameters)
        assert 0.9 * capacity <= shares[0] <= capacity
        assert level == 1 or shares[1] > capacity
    fitted = {one.strategy for one in entries_of(["sizes"]) if one.fitted_levels}
    assert fitted == {"heterofl", "fedrolex", "fjord"}


def test_fitted_levels_are_what_devices_get(tmp_path: Path) -> None:
    setup = replace(SMALL, capacities=(1.0, 0.25))
    wanted = replace(entry("heterofl"), limit=Limit.KEPT, fitted_levels=True)
    found = run(Run(setup, wanted, 0, models(tmp_path)))
    assert found["settings"]["levels"] == levels_for(bundle().graph, setup.capacities)
    assert found["kept_fraction"] > 0.5 * (1 + 0.2)


@pytest.mark.parametrize(
    "words",
    [["--setups", "size"], ["--strategies", "fedavg,hetrofl"], ["--setups", "sizes", "--strategies", "fedmrn"]],
)
def test_a_study_of_what_is_not_there_is_refused(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["accuracy", *words])
    with pytest.raises(SystemExit) as stopped:
        accuracy.main()
    assert stopped.value.code == 2


def test_every_claim_can_be_judged_by_the_quick_and_the_full_study() -> None:
    for study in (QUICK, FULL):
        runs = [
            result(one.setup, one.label, extracted={str(size): {"accuracy": 0.5} for size in study[one.setup].sizes})
            for one in entries_of(list(study))
        ]
        figures = figures_of(runs)
        assert all(claim(figures) for claim in CLAIMS)


def test_the_report_has_a_row_for_every_strategy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curve = [{"round": n, "accuracy": 0.1 * n, "own_accuracy": 0.5} for n in (1, 2)]
    runs = [result("digits", label, curve=curve) for label in ("fedavg", "fedmrn")]
    figures = figures_of(runs)
    write_report(figures, judged(figures), runs, [SMALL], tmp_path)
    printed = capsys.readouterr().out
    assert "fedavg" in printed
    assert "fedmrn" in printed
    assert (tmp_path / "table.csv").read_text().count("\n") == 3
    assert {path.name for path in tmp_path.iterdir()} == {
        "table.txt",
        "table.csv",
        "claims.txt",
        "results.json",
        "curves-digits.svg",
    }


def test_some_samples_of_a_data_set_are_always_the_same() -> None:
    first, again = dataset_of("digits", 100, 50), dataset_of.__wrapped__("digits", 100, 50)
    assert (len(first.train), len(first.test)) == (100, 50)
    assert np.array_equal(first.train.features, again.train.features)


def test_small_images_are_the_means_of_blocks() -> None:
    image = np.arange(28 * 28, dtype=np.uint16).reshape(1, 1, 28, 28)
    small = shrunk(Samples(image, np.zeros(1, np.int64))).features
    assert small.shape == (1, 1, 8, 8)
    assert small[0, 0, 0, 0] == np.rint(image[0, 0, :4, :4].mean())
    assert small[0, 0, 6, 6] == np.rint(image[0, 0, 24:, 24:].mean())
    assert not small[0, 0, 7].any()
