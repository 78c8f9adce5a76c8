"""The tables of the study, as Markdown: what each method reached, and what that cost."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.equal_cost_study.scenarios import Scenario

__all__ = ["scenario_table"]

_HEAD = ("method", "rate", "accuracy, %", "seconds", "joules", "MB up", "MB down", "inference", "rounds", "devices")


def scenario_table(scenario: Scenario, results: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of one scenario: means over seeds, and the deviation of the accuracy."""
    lines = [f"### {scenario.name}", "", f"{scenario.about}.", "", _row(_HEAD), _row(["---"] * len(_HEAD))]
    by_label: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        by_label.setdefault(result["label"], []).append(result)
    order = sorted(by_label.items(), key=lambda pair: -_mean(pair[1], "accuracy"))
    for label, found in order:
        good = [one for one in found if "error" not in one]
        if not good:
            lines.append(_row([label, *["-"] * (len(_HEAD) - 2), str(found[0].get("error"))[:80]]))
            continue
        accuracies = [100 * one["accuracy"] for one in good]
        spread = f" ±{statistics.stdev(accuracies):.1f}" if len(good) > 1 else ""
        lines.append(
            _row(
                [
                    label,
                    f"{good[0]['rate']:g}",
                    f"{statistics.fmean(accuracies):.1f}{spread}",
                    f"{_mean(good, 'seconds'):.0f}",
                    f"{_mean(good, 'joules'):.0f}",
                    f"{_mean(good, 'up_bytes') / 1e6:.2f}",
                    f"{_mean(good, 'down_bytes') / 1e6:.2f}",
                    f"{_mean(good, 'inference'):.2f}",
                    f"{_mean(good, 'rounds'):.0f}",
                    f"{_mean(good, 'devices'):.1f}",
                ]
            )
        )
    return "\n".join([*lines, ""])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _mean(results: Sequence[Mapping[str, Any]], name: str) -> float:
    values = [one[name] for one in results if one.get(name) is not None]
    return statistics.fmean(values) if values else 0.0
