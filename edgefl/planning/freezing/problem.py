"""The planning problem in numbers: which device may train which sets of blocks.

Eq. 9 of the paper, taken literally, may leave a device idle or a block untrained. Decided: minimise the bias, where

    some device trains every block;
    every device stays within its budget;
    a device leaves unused at most what its best possible fill leaves, or `tolerance` of its budget if that is more;
    among equal biases, the plan that leaves less unused wins.

If the third rule would leave a block untrained, the largest sets with that block count as filled.

Devices with the same sets to choose from are one group. If there are too many groups, neighbours are merged: they
choose among the sets that all of them may train, which can cost a little and never breaks a rule. Bounds are then
computed with the sets that any of them may train.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.errors import MaskError
from edgefl.planning.freezing.bias import Flags, Reals
from edgefl.planning.freezing.blocks import Block
from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.device import FreezingDevice
from edgefl.planning.freezing.device_kinds import DeviceKind, Packed, kinds_of
from edgefl.planning.freezing.set_costs import SetCosts

__all__ = ["CandidatePlan", "DeviceGroup", "Problem", "UncoveredError", "problem_of"]

MOST_DEVICE_GROUPS = 16
"""With more groups than this, neighbours are merged until each group has about one part in this many of all weight."""


class UncoveredError(MaskError):
    """No device would train some blocks."""

    blocks: tuple[str, ...] = ()
    """Their names."""

    @classmethod
    def of(cls, problem: str, blocks: tuple[str, ...]) -> "UncoveredError":
        """Return the error for these blocks, with what to do."""
        error = cls(
            problem,
            fix="Raise a budget, add a device, divide the block, or let the strongest device go beyond its budget "
            "(beyond_budget=True).",
        )
        error.blocks = blocks
        return error


@dataclass(frozen=True, slots=True, eq=False)
class DeviceGroup:
    """Devices that choose among the same sets."""

    devices: Integers
    """Their indices, most samples first."""
    weight: float
    """The sum of their weights."""
    choices: Integers
    """The sets that each of them may train: rows of the pool."""
    choices_of_any: Integers
    """The sets that any of them may train; the same ones unless groups were merged."""
    least: int
    """The smallest number of parameters that any of them must train."""
    most: int
    """The largest number that any of them can train."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Everything a planner needs; devices are sorted by name, so the given order does not matter."""

    blocks: tuple[Block, ...]
    sizes: Integers
    devices: tuple[FreezingDevice, ...]
    """The devices that can train something."""
    weights: Reals
    """Their shares of all samples."""
    budgets: Integers
    """The largest number of parameters that each may train."""
    pool: Flags
    """Sets of blocks, one row per set, from small to large."""
    fill: Integers
    """The number of parameters of each set."""
    complete: bool
    """Whether the pool has every possible set."""
    groups: tuple[DeviceGroup, ...]
    idle: tuple[FreezingDevice, ...] = ()
    """The devices that can train nothing."""

    @property
    def dimension(self) -> int:
        """The number of parameters of all blocks: d in the paper."""
        return int(self.sizes.sum())

    @property
    def lists_every_set(self) -> bool:
        """Whether every device's choices are all sets that it may train: only then is the best of them the best."""
        return self.complete and all(
            device_group.choices.size == device_group.choices_of_any.size for device_group in self.groups
        )

    def able(self, device_group: DeviceGroup) -> Flags:
        """Return which blocks the devices of a group can train."""
        able: Flags = np.logical_or.reduce(self.pool[device_group.choices_of_any])
        return able

    def unused(self, chosen: Integers) -> int:
        """Return the number of parameters that all devices together could train and do not."""
        return int(np.sum(self.budgets - self.fill[chosen]))


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePlan:
    """A plan and what is known about it. Bias and bound are in units of d."""

    chosen: Integers
    """The row of the pool that each device trains."""
    bias: float
    bound: float
    """No plan that obeys the rules has a bias below this."""
    least_unused: bool = False
    """Whether it is proven that no plan of the same bias leaves less unused."""


def problem_of(
    blocks: tuple[Block, ...],
    set_costs: SetCosts | None,
    devices: Sequence[FreezingDevice],
    *,
    tolerance: float,
    seed: int,
) -> Problem:
    """Turn a fleet into numbers; raise if some block is beyond every device."""
    ordered = sorted(devices, key=lambda device: device.device_id)
    names = [device.device_id for device in ordered]
    if len(set(names)) < len(names) or not names:
        raise MaskError("the fleet is empty or has two devices of the same name", fix="Give every device once.")
    sizes = np.array([block.size for block in blocks], np.int64)
    sets = kinds_of(sizes, set_costs, ordered, tolerance=tolerance, seed=seed)
    _check_affordable(blocks, sets.pool, sets.kinds)
    active = [number for number, kind in enumerate(sets.kind_of) if sets.kinds[kind].most]
    samples = np.array([ordered[number].samples for number in active], np.float64)
    kinds = np.array([sets.kind_of[number] for number in active])
    budgets = np.array([kind.budget for kind in sets.kinds], np.int64)
    weights = samples / samples.sum()
    return Problem(
        blocks,
        sizes,
        tuple(ordered[number] for number in active),
        weights,
        budgets[kinds],
        sets.pool,
        sets.pool @ sizes,
        sets.complete,
        tuple(_device_groups(sets.kinds, kinds, weights, len(sets.pool))),
        tuple(ordered[number] for number in sorted(set(range(len(ordered))) - set(active))),
    )


def _check_affordable(blocks: tuple[Block, ...], pool: Flags, kinds: Sequence[DeviceKind]) -> None:
    rows = _indices(np.bitwise_or.reduce([kind.packed for kind in kinds]), len(pool))
    covered = np.logical_or.reduce(pool[rows])
    if not covered.all():
        missing = tuple(block for block, there in zip(blocks, covered, strict=True) if not there)
        raise UncoveredError.of(
            f"no device can train block {missing[0].name!r} of {missing[0].size:,} parameters within its budget",
            tuple(block.name for block in missing),
        )


def _device_groups(kinds: Sequence[DeviceKind], kind_of: Integers, weights: Reals, sets: int) -> list[DeviceGroup]:
    """Group the devices that choose among equal sets, then merge neighbours until there are few enough groups."""
    equal: dict[bytes, list[int]] = {}
    for number in np.unique(kind_of):
        equal.setdefault(kinds[number].packed.tobytes(), []).append(int(number))
    groups = sorted(equal.values(), key=lambda group: (kinds[group[0]].least, kinds[group[0]].most, group))
    share = 0.0 if len(groups) <= MOST_DEVICE_GROUPS else 1 / MOST_DEVICE_GROUPS
    device_groups = []
    for bucket in _buckets(groups, kinds, np.bincount(kind_of, weights, len(kinds)).astype(float), share):
        members = np.flatnonzero(np.isin(kind_of, bucket))
        rows = [kinds[number].packed for number in bucket]
        device_groups.append(
            DeviceGroup(
                members[np.lexsort((members, -weights[members]))],
                float(weights[members].sum()),
                _indices(np.bitwise_and.reduce(rows), sets),
                _indices(np.bitwise_or.reduce(rows), sets),
                min(kinds[number].least for number in bucket),
                max(kinds[number].most for number in bucket),
            )
        )
    return device_groups


def _buckets(groups: list[list[int]], kinds: Sequence[DeviceKind], weight: Reals, share: float) -> list[list[int]]:
    """Divide groups of equal kinds into neighbourhoods of about `share` of all weight that have a set in common."""
    members = [number for group in groups for number in group]
    if len(groups) == 1:
        return [members]
    if share and weight[members].sum() <= share:
        common = np.bitwise_and.reduce([kinds[group[0]].packed for group in groups])
        if common.any():
            return [members]
    middle = len(groups) // 2
    return _buckets(groups[:middle], kinds, weight, share) + _buckets(groups[middle:], kinds, weight, share)


def _indices(packed: Packed, sets: int) -> Integers:
    return np.flatnonzero(np.unpackbits(packed, count=sets))
