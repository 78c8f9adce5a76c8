"""Which sets a device may train: those that fit and fill its budget well enough.

Called by `problem.py`. Devices with equal limits are one *kind*, and are considered once.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from edgefl.planning.freezing.bias import Flags, Reals
from edgefl.planning.freezing.candidate_sets import MOST_BLOCKS, Integers, best_sums, every_set, filled_sets
from edgefl.planning.freezing.device import FreezingDevice
from edgefl.planning.freezing.set_costs import SetCosts

__all__ = ["DeviceKind", "DeviceKinds", "Packed", "kinds_of"]

Packed = npt.NDArray[np.uint8]

_REPRESENTATIVES = 24
"""The number of kinds that sets are selected for, if a model has too many blocks to list all sets."""
_RANDOM_ORDERS = 96
_EXACT_FILLS = 128
"""The number of budgets whose best fill is then computed exactly; others use the best of the selection."""
_SLACK = 1e-6
"""The number of parameters that rounding may hide."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceKind:
    """Devices with equal limits."""

    packed: Packed
    """Which sets of the pool they may train, one bit per set; no bit is set if they can train nothing."""
    budget: int
    """The largest number of parameters that they may train. If time, memory or energy forbid the best fill of that
    number, the best fill that they allow."""
    least: int
    """The fewest parameters that a device must train to count as filled."""
    most: int
    """The best possible fill; if not every set is known, the limit of parameters, which is no less."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceKinds:
    """The kinds of a fleet, and the sets that they choose from."""

    pool: Flags
    complete: bool
    kinds: tuple[DeviceKind, ...]
    kind_of: Integers
    """The kind of each device."""


def kinds_of(
    sizes: Integers, set_costs: SetCosts | None, devices: Sequence[FreezingDevice], *, tolerance: float, seed: int
) -> DeviceKinds:
    """Find the kinds among these devices."""
    representatives: list[FreezingDevice] = []
    numbers: dict[Hashable, int] = {}
    kind_of = np.empty(len(devices), np.int64)
    for place, device in enumerate(devices):
        kind_of[place] = numbers.setdefault(_limits(device, sizes), len(representatives))
        if kind_of[place] == len(representatives):
            representatives.append(device)
    complete = sizes.size <= MOST_BLOCKS
    pool = every_set(sizes.size) if complete else _selection(sizes, set_costs, representatives, seed)
    pool = pool[np.argsort(pool @ sizes, kind="stable")]
    sets = _Sets(
        sizes, pool, pool @ sizes, complete, set_costs, None if set_costs is None else set_costs.quantities(pool)
    )
    kinds = _covering(sets, representatives, [_kind(sets, device, tolerance) for device in representatives])
    return DeviceKinds(pool, complete, tuple(kinds), kind_of)


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """The sets of the pool and what they cost."""

    sizes: Integers
    pool: Flags
    fill: Integers
    complete: bool
    set_costs: SetCosts | None
    quantities: Reals | None

    def fitting(self, device: FreezingDevice) -> Flags:
        """Return which sets stay within all limits of a device."""
        fits = self.fill <= _parameters(device, self.sizes)
        if self.set_costs is not None and self.quantities is not None and device.is_timed:
            fits &= self.set_costs.fitting(device, self.quantities)
        return fits


def _limits(device: FreezingDevice, sizes: Integers) -> Hashable:
    if device.is_timed:
        return device.budget, device.profile, device.batch, device.steps
    return _parameters(device, sizes)


def _parameters(device: FreezingDevice, sizes: Integers) -> int:
    limit = device.budget.trainable_parameters
    return int(sizes.sum()) if limit is None else min(limit, int(sizes.sum()))


def _kind(sets: _Sets, device: FreezingDevice, tolerance: float) -> DeviceKind:
    fits, fill = sets.fitting(device), sets.fill
    if not fits.any():
        return DeviceKind(np.packbits(fits), 0, 0, 0)
    limit = _parameters(device, sets.sizes)
    most = int(fill[fits].max())
    # The pool is sorted: the last set within the limit would be the best fill if only parameters counted.
    alone = int(fill[np.searchsorted(fill, limit, side="right") - 1])
    budget = limit if most == alone else most
    least = min(float(most), budget * (1 - tolerance))
    chosen = np.packbits(fits & (fill >= least - _SLACK))
    return DeviceKind(chosen, budget, int(np.ceil(least - _SLACK)), most if sets.complete else limit)


def _covering(sets: _Sets, representatives: Sequence[FreezingDevice], kinds: list[DeviceKind]) -> list[DeviceKind]:
    """If no filled set has some block, count the largest sets with that block as filled."""
    chosen = np.unpackbits(np.bitwise_or.reduce([kind.packed for kind in kinds]), count=len(sets.pool)).view(np.bool_)
    missing = np.flatnonzero(~sets.pool[chosen].any(axis=0))
    if not missing.size:
        return kinds
    widened = []
    for device, kind in zip(representatives, kinds, strict=True):
        fits, row, least = sets.fitting(device), kind.packed, kind.least
        for block in missing:
            with_it = fits & sets.pool[:, block]
            if with_it.any():
                best = int(sets.fill[with_it].max())
                row, least = row | np.packbits(with_it & (sets.fill == best)), min(least, best)
        widened.append(replace(kind, packed=row, least=least))
    return widened


def _selection(
    sizes: Integers, set_costs: SetCosts | None, representatives: Sequence[FreezingDevice], seed: int
) -> Flags:
    """Return sets for kinds from all over the fleet, among them the best fills of parameter budgets."""
    generator = np.random.default_rng([seed, sizes.size])
    ordered = sorted(representatives, key=lambda device: (_parameters(device, sizes), device.device_id))
    found = []
    for pick in np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), _REPRESENTATIVES)).round().astype(int)):
        device = ordered[pick]

        def fits(tried: Flags, device: FreezingDevice = device) -> Flags:
            quantities = set_costs.quantities(tried) if set_costs is not None and device.is_timed else None
            return _Sets(sizes, tried, tried @ sizes, False, set_costs, quantities).fitting(device)

        found.append(filled_sets(sizes, fits, generator, random=_RANDOM_ORDERS))
    limits = sorted({_parameters(device, sizes) for device in representatives})
    exact = best_sums(sizes, np.array(limits[:: -(-len(limits) // _EXACT_FILLS)], np.int64))
    if exact is not None:
        found.append(exact[exact.any(axis=1)])
    return np.unique(np.concatenate(found), axis=0)
