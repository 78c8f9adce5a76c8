"""An exact head from sums: equal to a central fit on all samples, and its penalty chosen without any."""

import numpy as np
import pytest

from edgefl.strategies.head_fit import (
    PENALTIES,
    Doubles,
    Moments,
    best_penalty,
    extrapolated,
    folded,
    logistic_step,
    ridge,
    total_of,
)


def samples(seed: int, count: int = 300, features: int = 6, classes: int = 3) -> tuple[Doubles, Doubles]:
    """Features of classes that lie apart, and labels as zeros and a one."""
    draws = np.random.default_rng(seed)
    centres = draws.normal(size=(classes, features))
    labels = draws.integers(0, classes, count)
    return centres[labels] + draws.normal(size=(count, features)), np.eye(classes)[labels]


def moments_of(rows: Doubles, targets: Doubles) -> Moments:
    return Moments(rows.T @ rows, rows.T @ targets, (targets * targets).sum(axis=0), len(rows))


def with_one(rows: Doubles) -> Doubles:
    return np.hstack([rows, np.ones((len(rows), 1))])


def test_three_samples_by_hand() -> None:
    """h = 1, 2, 3 and y = 2, 4, 7, no bias: A = 14, B = 31, so W = 31 / (14 + 14/14 * penalty * ...)."""
    rows, targets = np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [4.0], [7.0]])
    moments = moments_of(rows, targets)
    assert ridge(moments, 0.0, bias=False, classes=False) == pytest.approx(31 / 14)
    assert ridge(moments, 1.0, bias=False, classes=False) == pytest.approx(31 / 28)


def test_a_bias_is_not_penalised() -> None:
    rows, targets = np.array([[1.0], [2.0], [3.0]]), np.array([[12.0], [14.0], [16.0]])
    found = ridge(moments_of(with_one(rows), targets), 1e9, bias=True, classes=False)
    assert found[:, 0] == pytest.approx([0.0, 14.0], abs=1e-6)
    exact = ridge(moments_of(with_one(rows), targets), 0.0, bias=True, classes=False)
    assert exact[:, 0] == pytest.approx([2.0, 10.0])


@pytest.mark.parametrize("bias", [True, False])
def test_the_sums_of_devices_give_the_central_fit(bias: bool) -> None:
    rows, targets = samples(1)
    seen = with_one(rows) if bias else rows
    devices = [moments_of(seen[start::7], targets[start::7]) for start in range(7)]
    found = ridge(total_of(devices), 1e-3, bias=bias, classes=False)
    scale = 1e-3 * float(np.mean((rows * rows).sum(axis=0)))
    if bias:
        mean, target = rows.mean(axis=0), targets.mean(axis=0)
        centred = rows - mean
        slope = np.linalg.solve(centred.T @ centred + scale * np.eye(6), centred.T @ (targets - target))
        central = np.vstack([slope, target - mean @ slope])
    else:
        central = np.linalg.solve(rows.T @ rows + scale * np.eye(6), rows.T @ targets)
    assert found == pytest.approx(central, rel=1e-9, abs=1e-12)


def test_of_classes_the_highest_score_is_that_of_the_regression() -> None:
    rows, targets = samples(2)
    moments = moments_of(with_one(rows), targets)
    plain, logits = (ridge(moments, 1e-3, bias=True, classes=classes) for classes in (False, True))
    assert np.array_equal((with_one(rows) @ plain).argmax(axis=1), (with_one(rows) @ logits).argmax(axis=1))
    assert with_one(rows) @ logits == pytest.approx(3 * (with_one(rows) @ plain) - 1)


def test_a_triangle_is_the_whole_matrix() -> None:
    moments = moments_of(*samples(3, count=20))
    packed = moments.gram[np.triu_indices(6)]
    found = Moments.of_triangle(packed, moments.products, moments.squares, 20)
    assert np.array_equal(found.gram, moments.gram)


def test_the_head_of_some_features_is_that_of_a_fit_on_them() -> None:
    rows, targets = samples(4)
    chosen = np.array([0, 2, 5])
    part = moments_of(rows, targets).part(chosen)
    alone = moments_of(rows[:, chosen], targets)
    assert ridge(part, 1e-3, bias=False, classes=True) == pytest.approx(ridge(alone, 1e-3, bias=False, classes=True))


def test_the_penalty_is_the_best_one_on_devices_that_were_left_out() -> None:
    """Many useless features and few samples need a penalty; a slow loop over the samples finds the same one."""
    draws = np.random.default_rng(5)
    devices = []
    for _ in range(6):
        rows = with_one(draws.normal(size=(8, 30)))
        devices.append((rows, rows[:, :1] + 0.5 * draws.normal(size=(8, 1))))
    sums = [moments_of(*one) for one in devices]
    errors = {}
    for penalty in PENALTIES:
        errors[penalty] = 0.0
        for place, (rows, targets) in enumerate(devices):
            head = ridge(total_of(sums[:place] + sums[place + 1 :]), penalty, bias=True, classes=False)
            errors[penalty] += float(((rows @ head - targets) ** 2).sum())
    best = min(errors, key=lambda penalty: errors[penalty])
    assert best_penalty(sums, bias=True) == best
    assert best > min(PENALTIES)


def test_many_devices_are_left_out_in_groups() -> None:
    rows, targets = samples(6, count=400)
    devices = [moments_of(rows[start::50], targets[start::50]) for start in range(50)]
    groups = [total_of(devices[first::16]) for first in range(16)]
    folds = folded(iter(devices))
    assert len(folds) == len(groups) == 16
    assert all(one.gram == pytest.approx(other.gram) for one, other in zip(folds, groups, strict=True))
    assert best_penalty(folds, bias=False) == best_penalty(groups, bias=False)
    assert best_penalty(devices[:1], bias=False) in PENALTIES


def test_logistic_steps_come_to_the_minimum_of_the_central_loss() -> None:
    rows, targets = samples(7)
    rows = with_one(rows)
    moments = moments_of(rows, targets)
    penalty = 1e-3
    damping = np.append(np.full(6, penalty * np.diag(moments.gram)[:6].mean() / 3), 0.0)[:, None]

    def gradient(head: Doubles) -> Doubles:
        odds = np.exp(rows @ head)
        return np.asarray(rows.T @ (odds / odds.sum(axis=1, keepdims=True) - targets))

    def loss(head: Doubles) -> float:
        scores = rows @ head
        fits = (np.log(np.exp(scores).sum(axis=1)) - (scores * targets).sum(axis=1)).sum()
        return float(fits + (damping * head * head).sum() / 2)

    head = before = ridge(moments, penalty, bias=True, classes=True)
    losses = [loss(head)]
    for step in range(60):
        at = extrapolated(head, before, step)
        head, before = logistic_step(moments, at, gradient(at), penalty, bias=True), head
        losses.append(loss(head))
    assert np.abs(gradient(head) + damping * head).max() < 1e-3 * np.abs(gradient(0 * head)).max()
    assert losses[-1] < losses[5] < losses[0]
