"""The most bytes that the update of a task can have, from the rule and the mask of its plan.

The coordinator reads no more of an upload. The bound is close for tensors, whose forms are known, and generous for the
texts and the header around them: a client in another language may write them less tightly.
"""

import math

import numpy as np

from edgefl.local_rules.channel_pruning import ChannelPruning
from edgefl.local_rules.compressed_sgd import CompressedSgd, Compression
from edgefl.local_rules.compression.top_k import kept_count
from edgefl.local_rules.descent import weight_tensors
from edgefl.local_rules.fine_tune import FineTune
from edgefl.local_rules.local_training import LocalTraining
from edgefl.local_rules.magnitude_pruning import MagnitudePruning, weights_left
from edgefl.local_rules.masked_noise import MaskedNoise
from edgefl.local_rules.probabilistic_masks import ProbabilisticMasks
from edgefl.local_rules.prune_regrow import ChannelRegrow, PruneRegrow
from edgefl.local_rules.pruned_noise import PrunedNoise
from edgefl.local_rules.registry import only_forward, rule_of
from edgefl.local_rules.rule import LocalRule
from edgefl.local_rules.sampled_masks import SampledMasks
from edgefl.local_rules.sensitivity import report_forms
from edgefl.local_rules.sgd import Sgd
from edgefl.local_rules.shared_layers import SharedLayers
from edgefl.local_rules.weight_pruning import WeightPruning
from edgefl.masks import Mask
from edgefl.values import RuleSettings
from edgefl.wire import Bits

__all__ = ["most_upload_bytes"]

_TEXTS = 64 * 1024
"""Bytes of the report, the digests and the names of layers."""
_HEADER_OF_TENSOR = 512
"""Bytes that describe a tensor, without its name."""
_DOUBLE = 8
_NAMES = 8
"""How often the name of a tensor may be written, or how much longer its escaped form may be."""
_SENDS_NOTHING = (FineTune, LocalTraining)
_SENDS_BITS = (MaskedNoise, PrunedNoise, SampledMasks)
_CHANGES_MASK = (ChannelPruning, PrunedNoise, PruneRegrow, ChannelRegrow, WeightPruning)


def most_upload_bytes(settings: RuleSettings, mask: Mask) -> int:
    """Return the most bytes that the body of an update can have if a device trains `mask` by this rule."""
    rule = rule_of(settings)
    described = sum(_HEADER_OF_TENSOR + _NAMES * len(tensor.name.encode()) for tensor in mask.graph.tensors)
    described += sum(_NAMES * len(layer.name.encode()) for layer in mask.graph.layers)
    new_mask = _mask_bytes(mask) if isinstance(rule, _CHANGES_MASK) else 0
    return _TEXTS + described + sum(_tensor_bytes(rule, mask).values()) + new_mask + _report_bytes(rule, mask)


def _tensor_bytes(rule: LocalRule, mask: Mask) -> dict[str, int]:
    """Return the bytes of what a rule sends, by tensor or group."""
    if isinstance(rule, _SENDS_NOTHING):
        return {}
    if isinstance(rule, ProbabilisticMasks):
        bits = (rule.max_draws + 1).bit_length()
        sizes = {name: math.prod(shape) for name, shape in mask.shapes.items()}
        return {name: bits * _packed(size) for name, size in sizes.items()}
    if only_forward(rule):
        sums = rule.sends(mask)
        return {name: _DOUBLE * math.prod(form.shape) + _HEADER_OF_TENSOR for name, form in sums.items()}
    sent = rule.sends(mask) if isinstance(rule, SharedLayers) else mask.trained_tensors
    values = {name: _value_bytes(mask, name) for name in sent}
    if isinstance(rule, _SENDS_BITS):
        return values | {name: _packed(math.prod(mask.shapes[name])) for name in weight_tensors(mask)}
    if isinstance(rule, MagnitudePruning):
        left = weights_left(mask, rule.kept)
        sizes = {name: math.prod(mask.shapes[name]) for name in weight_tensors(mask)}
        return values | {name: 4 * min(left, size) + _packed(size) for name, size in sizes.items()}
    if isinstance(rule, CompressedSgd):
        return values | _compressed_bytes(rule, mask)
    return values


def _value_bytes(mask: Mask, name: str) -> int:
    """Return the bytes of new values, and of the positions of those that are held if that is not all."""
    size, item = math.prod(mask.shapes[name]), mask.graph.tensor[name].item_bytes
    if name not in mask.held:
        return size * item
    return int(np.count_nonzero(mask.held[name])) * item + _packed(size)


def _compressed_bytes(rule: CompressedSgd, mask: Mask) -> dict[str, int]:
    if rule.compressor is Compression.TOP_K:
        sizes = {name: math.prod(mask.shapes[name]) for name in weight_tensors(mask)}
        return {name: 4 * kept_count(size, rule.kept) + _packed(size) for name, size in sizes.items()}
    return {
        name: _packed(math.prod(form.shape))
        if form.codec == Bits.codec
        else np.dtype(form.dtype).itemsize * math.prod(form.shape)
        for name, form in rule.expected(mask).items()
    }


def _report_bytes(rule: LocalRule, mask: Mask) -> int:
    """Return the bytes of a report of sensitivities, with its names."""
    if not isinstance(rule, Sgd | MaskedNoise) or not rule.sensitivity:
        return 0
    return sum(
        _HEADER_OF_TENSOR + _NAMES * len(name.encode()) + 4 * math.prod(form.shape)
        for name, form in report_forms(mask).items()
    )


def _mask_bytes(mask: Mask) -> int:
    """Return the bytes of a mask that a device sends: a bit for each channel, and for each weight of the submodel."""
    groups = sum(_packed(group.width) for group in mask.graph.groups)
    return groups + sum(_packed(math.prod(shape)) for shape in mask.shapes.values())


def _packed(size: int) -> int:
    return -(-size // 8)
