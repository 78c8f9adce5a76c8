"""The study of `benchmarks.accuracy`: entries can be run, finished runs are found again, claims are judged right."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import accuracy
from benchmarks.accuracy_study.claims import COMPARISONS, judged
from benchmarks.accuracy_study.counted_claims import COUNTED
from benchmarks.accuracy_study.data import dataset_of, of_own_classes, shrunk
from benchmarks.accuracy_study.entries import Entry, Limit, entries_of, levels_for, settings_in
from benchmarks.accuracy_study.figures import MEASURES, figures_of
from benchmarks.accuracy_study.ledger import Ledger
from benchmarks.accuracy_study.overlaps import overlap
from benchmarks.accuracy_study.report import write_report
from benchmarks.accuracy_study.run import Run, run
from benchmarks.accuracy_study.setups import FULL, QUICK, Setup
from benchmarks.accuracy_study.standard import STANDARD
from benchmarks.accuracy_study.tuning import STEPS, TUNING_SEEDS, Choice, Trial, candidates, sharing
from benchmarks.accuracy_study.verdicts import Ruling
from edgefl.artifacts.submodel import bundle_weights
from edgefl.data import Samples
from edgefl.local_rules import Descent
from edgefl.local_rules.ordered_dropout import parse_levels
from edgefl.masks import Mask, kept_width
from edgefl.model_graph import GraphBuilder
from edgefl.strategies import STRATEGIES, Strategy, strategy_of
from edgefl.wire import encode_weights
from examples.networks import cnn4
from tests.device_runtime.federation import BUNDLE, bundle

SMALL = replace(QUICK["digits"], model="small_cnn", rounds=2, per_round=3, clients=6, epochs=1)


def entry(label: str = "fedavg") -> Entry:
    return Entry(setup="digits", label=label, strategy=label.split()[0])


def result(setup: str, label: str, seed: int = 0, **changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = dict.fromkeys(MEASURES, 1.0)
    return plain | {"setup": setup, "label": label, "seed": seed, "refused": [], "series": {}} | changes


def models(folder: Path) -> Path:
    (folder / "small_cnn.zip").write_bytes(BUNDLE.read_bytes())
    (folder / "small_cnn-0.safetensors").write_bytes(encode_weights(bundle_weights(bundle()), {}))
    return folder


@pytest.mark.parametrize("study", [QUICK, STANDARD, FULL], ids=["quick", "standard", "full"])
def test_every_entry_is_a_strategy_with_settings_that_it_knows(study: dict[str, Setup]) -> None:
    entries = entries_of(list(study))
    for one in entries:
        strategy_of(one.strategy, settings_in(study[one.setup], one))
    if "digits" in study:
        assert {one.strategy for one in entries} == set(STRATEGIES), "a new strategy is at least run on the digits"
    assert len({(one.setup, one.label) for one in entries}) == len(entries)


def descent_of(strategy: Strategy) -> Descent:
    found = getattr(strategy, "descent", None)
    assert isinstance(found, Descent)
    return found


@pytest.mark.parametrize("study", [QUICK, STANDARD, FULL], ids=["quick", "standard", "full"])
def test_all_methods_of_a_set_up_have_the_same_optimiser(study: dict[str, Setup]) -> None:
    for name, setup in study.items():
        if name in ("digits", "bytes"):  # every strategy as it comes; bytes alone
            continue
        told = [(one.label, one.strategy, settings_in(setup, one)) for one in entries_of([name])]
        descents = {label: descent_of(strategy_of(strategy, settings)) for label, strategy, settings in told}
        found = {label: (d.momentum, d.nesterov, d.weight_decay, d.clip_norm) for label, d in descents.items()}
        assert len(set(found.values())) == 1, (name, found)
        progress = range(0, 100, 5)
        rates = {tuple(round(d.round_rate(n, 100) / d.learning_rate, 9) for n in progress) for d in descents.values()}
        assert len(rates) == 1, name


def test_the_entries_of_fedspa_are_those_of_its_paper() -> None:
    """Section 4.2: RSM has one mask for all. Section 5.1: Ditto pulls by 0.5 and trains its own models for 3 epochs."""
    found = {one.label: one for one in entries_of(["weights"])}
    assert found["fedspa static"].settings == {"method": "static", "first_masks": "same"}
    assert found["fedspa holders"].settings == {"overlap": "holders"}
    assert (found["ditto"].settings, found["ditto"].epochs) == ({"pull": 0.5}, 3)


def test_an_entry_may_have_fewer_epochs_than_its_set_up_and_never_more(tmp_path: Path) -> None:
    setup = replace(SMALL, epochs=2)
    usual, shorter, longer = (
        run(Run(setup, replace(entry(), epochs=epochs), 0, models(tmp_path)))["multiply_adds"]
        for epochs in (None, 1, 3)
    )
    assert usual == longer == pytest.approx(2 * shorter)


def test_a_run_gives_every_figure_and_is_found_again(tmp_path: Path) -> None:
    wanted, ledger = Run(SMALL, entry(), 0, models(tmp_path)), Ledger(tmp_path / "runs")
    assert ledger.known(wanted) is None
    found = run(wanted)
    assert "error" not in found
    assert all(found[name] is not None for name in MEASURES if not name.startswith("overlap"))
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


def in_seeds(setup: str, label: str, measure: str, *values: float) -> list[dict[str, Any]]:
    """Runs of seeds 0, 1, ... with these values."""
    return [result(setup, label, seed, **{measure: value}) for seed, value in enumerate(values)]


def test_an_interval_is_students() -> None:
    runs = in_seeds("digits", "fedavg", "accuracy", 0.8, 0.9, 1.0)
    value = figures_of(runs)["digits", "fedavg"].values["accuracy"]
    assert value.interval == pytest.approx(4.302653 * 0.1 / 3**0.5)  # t of two degrees of freedom, 97.5 %
    assert figures_of(runs[:1])["digits", "fedavg"].values["accuracy"].interval is None


@pytest.mark.parametrize(
    ("fedmrn", "close", "better"),
    [
        ((0.90, 0.91, 0.92), Ruling.HELD, Ruling.HELD),
        ((0.85, 0.86, 0.87), Ruling.NOT_HELD, Ruling.HELD),
        ((0.80, 0.81, 0.82), Ruling.NOT_HELD, Ruling.NOT_HELD),
        ((0.80, 0.91, 1.00), Ruling.UNDECIDED, Ruling.UNDECIDED),
        ((0.92,), Ruling.UNDECIDED, Ruling.UNDECIDED),
    ],
)
def test_a_claim_is_undecided_if_its_interval_has_room_for_both_answers(
    fedmrn: tuple[float, ...], close: Ruling, better: Ruling
) -> None:
    others = {"fedavg": (0.90, 0.91, 0.92), "signsgd": (0.84, 0.849, 0.86)}
    runs = [one for label, found in others.items() for one in in_seeds("uplink", label, "accuracy", *found)]
    verdicts = judged(figures_of([*runs, *in_seeds("uplink", "fedmrn", "accuracy", *fedmrn)]))
    rulings = {verdict.claim: verdict.ruling for verdict in verdicts}
    assert rulings["uplink: FedMRN is within 1 point of FedAvg"] is close
    assert rulings["uplink: FedMRN is above signSGD"] is better


@pytest.mark.parametrize(("bits", "ruling"), [(100.0, Ruling.HELD), (101.0, Ruling.NOT_HELD)])
def test_one_seed_decides_what_is_counted(bits: float, ruling: Ruling) -> None:
    runs = [result("bytes", "fedavg", up_bytes=2600.0), result("bytes", "fedmrn", up_bytes=bits)]
    (verdict,) = judged(figures_of(runs))
    assert verdict.ruling is ruling


def test_a_claim_about_what_was_not_run_is_left_out() -> None:
    assert judged(figures_of([result("freezing", "fedavg")])) == []


def test_a_difference_deviates_as_much_as_seeds_do_compared_with_themselves() -> None:
    # Seeds differ by tens of points, and PerFedMask's masks are 1, 2 and 3 points better in each.
    runs = [
        one
        for label, better in (("perfedmask", 1), ("perfedmask random", 0))
        for one in in_seeds(
            "freezing",
            label,
            "before",
            *(base + better * (seed + 1) / 100 for seed, base in enumerate((0.5, 0.7, 0.9))),
        )
    ]
    (verdict,) = judged(figures_of(runs))
    assert verdict.figures == "72.0 against 70.0, +2.0 ±2.5"
    assert verdict.ruling is Ruling.UNDECIDED


@pytest.mark.parametrize(("share", "ruling"), [(0.505, Ruling.HELD), (0.51, Ruling.NOT_HELD)])
def test_fedspa_is_judged_by_half_of_the_bytes(share: float, ruling: Ruling) -> None:
    runs = [
        result("weights", "fedspa static", up_bytes=1000 * share),
        result("weights", "fedspa", up_bytes=900.0),
        result("weights", "fedavg", up_bytes=1000.0),
    ]
    (verdict,) = (one for one in judged(figures_of(runs)) if "static masks" in one.claim)
    assert verdict.ruling is ruling
    assert f"{100 * share:.1f} %" in verdict.figures


def test_every_method_is_tuned_over_the_rates_of_its_set_up_or_its_own() -> None:
    setup = replace(SMALL, rates=(0.1, 0.2, 0.3))
    assert [one.settings for one in candidates(setup, entry())] == [{"learning_rate": rate} for rate in setup.rates]
    own = replace(
        entry("fedmrn"), settings={"noise_masks": "signed"}, grid={"learning_rate": (1, 2), "noise_bound": (3,)}
    )
    assert [one.settings for one in candidates(setup, own)] == [
        {"noise_masks": "signed", "learning_rate": rate, "noise_bound": 3} for rate in (1, 2)
    ]
    assert candidates(SMALL, own) == [own], "a set-up without rates is not tuned"


def test_an_ablation_shares_what_its_method_was_tuned_to() -> None:
    setup = replace(SMALL, rates=(0.1, 0.2))
    ablation = replace(entry("fedmrn progressive"), settings={"noise_masking": "progressive"}, like="fedmrn")
    assert candidates(setup, ablation) == [ablation], "it is not tuned itself"
    tuned = Choice(replace(entry("fedmrn"), settings={"learning_rate": 0.2, "noise_bound": 0.05}), {"x": 0.9})
    found = sharing(ablation, tuned)
    assert found.entry.settings == {"learning_rate": 0.2, "noise_bound": 0.05, "noise_masking": "progressive"}
    assert found.entry.label == "fedmrn progressive"
    assert found.tried == {}


@pytest.mark.parametrize("study", [QUICK, STANDARD, FULL], ids=["quick", "standard", "full"])
def test_what_shares_settings_shares_those_of_an_entry_that_is_tuned(study: dict[str, Setup]) -> None:
    entries = {(one.setup, one.label): one for one in entries_of(list(study))}
    for one in entries.values():
        assert not one.like or not entries[one.setup, one.like].like
        assert not one.like or entries[one.setup, one.like].strategy == one.strategy


def test_an_entry_is_tuned_for_what_its_claims_are_about() -> None:
    setup = replace(SMALL, rates=(0.1, 0.2), judged_by="before")
    for one, best in ((entry("ditto"), 0.1), (replace(entry("ditto"), judged_by="after"), 0.2)):
        trial = Trial(setup, one)
        for option, after in zip(trial.wanted(), (0.5, 0.9), strict=True):
            trial.note(option, [result("digits", "ditto", before=1 - after, after=after)])
        assert trial.choice().entry.settings == {"learning_rate": best}


def tuned_by(setup: Setup, one: Entry, how_good: Callable[[float], float]) -> tuple[list[list[float]], float]:
    """Return which rates were tried step by step, and the best one."""
    trial, tried = Trial(setup, one), []
    for _ in range(STEPS):
        wanted = trial.wanted()
        rates = [float(option.settings["learning_rate"]) for option in wanted]
        for option, rate in zip(wanted, rates, strict=True):
            trial.note(option, [result("digits", "fedavg", accuracy=how_good(rate))])
        tried.append(rates)
    return tried, float(trial.choice().entry.settings["learning_rate"])


@pytest.mark.parametrize(
    ("optimum", "steps", "best"),
    [
        (0.03, [[0.01, 0.03, 0.1], [], []], 0.03),
        (0.2, [[0.01, 0.03, 0.1], [0.3], [0.9]], 0.3),
        (0.004, [[0.01, 0.03, 0.1], [0.003], [0.0009]], 0.003),
        (10.0, [[0.01, 0.03, 0.1], [0.3], [0.9]], 0.9),
    ],
)
def test_what_is_best_at_the_edge_is_followed_further_out(
    optimum: float, steps: list[list[float]], best: float
) -> None:
    setup = replace(SMALL, rates=(0.01, 0.03, 0.1))
    assert tuned_by(setup, entry(), lambda rate: -abs(math.log(rate / optimum))) == (steps, best)


def test_the_first_seed_of_everything_comes_before_the_second_of_anything() -> None:
    study = {"digits": replace(SMALL, seeds=1), "uplink": replace(SMALL, name="uplink", seeds=2)}
    choices = [Choice(replace(entry(), setup=name), {}) for name in study]
    runs = [(setup.name, seed) for setup, _, seed in accuracy._reported(study, choices, None)]
    assert runs == [("digits", 0), ("uplink", 0), ("uplink", 1)]
    assert len(accuracy._reported(study, choices, 3)) == 6


def test_each_kind_of_devices_may_have_classes_of_its_own() -> None:
    data = dataset_of("digits", None, None)
    lower, upper = of_own_classes(data, 2)
    assert set(lower.train.labels) == {0, 1, 2, 3, 4}
    assert set(upper.train.labels) == {5, 6, 7, 8, 9}
    assert len(lower.train) + len(upper.train) == len(data.train)
    assert len(lower.test) == len(upper.test) == len(data.test), "the global model is judged by all classes"


def test_weak_devices_with_classes_of_their_own_take_part(tmp_path: Path) -> None:
    setup = replace(SMALL, capacities=(1.0, 0.5), own_classes=True, scheme="iid", per_round=6)
    found = run(Run(setup, replace(entry("perfedmask"), limit=Limit.TRAINED), 0, models(tmp_path)))
    assert found["updates"] == 12
    assert found["refused"] == []


def test_devices_are_judged_after_several_numbers_of_epochs_and_have_an_entrys_own_kinds(tmp_path: Path) -> None:
    tuned = replace(entry("fedbabu"), fine_tuned=(1, 3), limit=Limit.TRAINED, settings={"learning_rate": 0.05})
    found = run(Run(replace(SMALL, capacities=(1.0, 0.5)), tuned, 0, models(tmp_path)))
    assert list(found["series"]["fine-tuned"]) == ["1", "3"]
    assert found["series"]["fine-tuned"]["1"] != found["series"]["fine-tuned"]["3"]
    perfedmask = replace(entry("perfedmask"), limit=Limit.TRAINED)
    some, every = (
        run(Run(replace(SMALL, capacities=(1.0, 0.5)), replace(perfedmask, capacities=kinds), 0, models(tmp_path)))
        for kinds in ((), (1.0,))
    )
    assert some["trained_fraction"] < every["trained_fraction"]


def test_the_overlap_of_masks_by_hand() -> None:
    """Of one group of 8 channels, a keeps 4, b 2 of them, and c 4 of which one is a's and none b's."""
    build = GraphBuilder("pair", channels=1)
    build.linear("head", build.linear("a", build.input, 8), 2, head=True)
    graph = build.finish()
    kept = {"a": [0, 1, 2, 3], "b": [0, 1], "c": [3, 4, 5, 6]}
    masks = {name: Mask.of(graph, kept={"a": channels}) for name, channels in kept.items()}
    found, chance = overlap(masks, {"a": {1}, "b": {1, 2}, "c": {3}})
    # a and b have class 1 in common. a shares 1 of 4 with c, c 1 of 4 with a, b and c share nothing.
    assert found == pytest.approx((1 / 4 + 1 / 4 + 0 + 0) / 4)
    # A random half holds half of the other's channels, a random quarter a quarter: a of c, c of a, b of c, c of b.
    assert chance == pytest.approx((1 / 2 + 1 / 2 + 1 / 2 + 1 / 4) / 4)
    assert overlap(masks, {name: {1} for name in masks}) == (None, None)


def test_an_entry_may_have_more_or_fewer_rounds_than_its_set_up(tmp_path: Path) -> None:
    setup = replace(SMALL, rounds=4)
    for share, rounds in ((0.5, 2), (1.0, 4), (1.25, 5)):
        found = run(Run(setup, replace(entry(), rounds=share), 0, models(tmp_path)))
        assert [point["round"] for point in found["curve"]] == list(range(1, rounds + 1))


def test_the_best_mean_of_the_measure_is_chosen_and_failed_runs_never_are() -> None:
    setup = replace(SMALL, rates=(0.1, 0.2, 0.3), judged_by="after")
    runs = [
        [result("digits", "fedavg", seed, after=value) for seed, value in zip(TUNING_SEEDS, values, strict=True)]
        for values in ((0.5, 0.9), (0.8, 0.8), (0.95, 0.95))
    ]
    runs[2] = [one | {"error": "diverged"} for one in runs[2]]
    trial = Trial(setup, entry())
    for option, found in zip(trial.wanted(), runs, strict=True):
        trial.note(option, found)
    choice = trial.choice()
    assert choice.entry.settings == {"learning_rate": 0.2}
    assert choice.tried == pytest.approx({"learning_rate 0.1": 0.7, "learning_rate 0.2": 0.8, "learning_rate 0.3": 0.0})
    assert not set(TUNING_SEEDS) & set(range(50)), "reported seeds count from 0"


def test_a_study_is_tuned_first_and_an_interrupted_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned = replace(SMALL, rates=(0.01, 0.1))
    monkeypatch.setattr(accuracy, "QUICK", {"digits": tuned})
    monkeypatch.setattr(accuracy, "_prepare", lambda wanted, folder: None)
    done: list[Run] = []

    def instead(wanted: list[Run], left: list[int], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
        for number in left:
            done.append(wanted[number])
            rate = wanted[number].entry.settings["learning_rate"]
            assert isinstance(rate, float)
            yield (
                number,
                result("digits", "fedavg", wanted[number].seed, accuracy=min(rate, 0.19 - rate / 10), curve=[]),
            )

    monkeypatch.setattr(accuracy, "_done", instead)
    words = ["accuracy", "--strategies", "fedavg", "--seeds", "2", "--resume", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", words)
    accuracy.main()
    assert [(one.seed, one.entry.settings["learning_rate"]) for one in done] == [
        (100, 0.01), (101, 0.01), (100, 0.1), (101, 0.1), (100, 1.0), (101, 1.0), (0, 0.1), (1, 0.1),
    ]  # fmt: skip
    assert (
        tmp_path / "tuning.txt"
    ).read_text() == "digits fedavg: learning_rate 0.01: 1.0; learning_rate 0.1: 10.0 *; learning_rate 1.0: 9.0\n"
    done.clear()
    accuracy.main()
    assert done == []
    capsys.readouterr()


def test_a_study_whose_data_are_missing_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("EDGEFL_DATA", str(tmp_path))
    dataset_of.cache_clear()
    monkeypatch.setattr("sys.argv", ["accuracy", "--standard", "--setups", "freezing", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        accuracy.main()
    assert "nothing is left to run" in str(stopped.value.code)
    assert "'cifar10' was not found" in capsys.readouterr().err


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


def series_of(setup: Setup, one: Entry) -> dict[str, dict[str, float]]:
    by_size = {str(size): 0.5 for size in setup.sizes}
    return {"size": by_size, "size, drawn": by_size, "fine-tuned": {str(epochs): 0.5 for epochs in one.fine_tuned}}


@pytest.mark.parametrize("study", [QUICK, STANDARD, FULL], ids=["quick", "standard", "full"])
def test_every_claim_can_be_judged_by_every_study(study: dict[str, Setup]) -> None:
    runs = [result(one.setup, one.label, series=series_of(study[one.setup], one)) for one in entries_of(list(study))]
    figures = figures_of(runs)
    assert all(claim(figures) for claim in COUNTED)
    judged_somewhere = [one for one in COMPARISONS if one.setups in study]
    assert judged_somewhere
    assert all(list(one.verdicts(figures)) for one in judged_somewhere)


def test_the_report_has_a_row_for_every_strategy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curve = [{"round": n, "accuracy": 0.1 * n, "own_accuracy": 0.5} for n in (1, 2)]
    runs = [result("digits", label, curve=curve) for label in ("fedavg", "fedmrn")]
    figures = figures_of(runs)
    write_report(figures, judged(figures), runs, [SMALL], [], tmp_path)
    printed = capsys.readouterr().out
    assert "fedavg" in printed
    assert "fedmrn" in printed
    assert (tmp_path / "table.csv").read_text().count("\n") == 3
    assert {path.name for path in tmp_path.iterdir()} == {
        "table.txt",
        "table.csv",
        "claims.md",
        "tuning.txt",
        "tables.md",
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
