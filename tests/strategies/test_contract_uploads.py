"""The contract of every strategy: what a device's rule produced is what the coordinator reads, and nothing else is."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

import numpy as np
import pytest

from edgefl.errors import WireFormatError
from edgefl.federation.submodel_document import submodel_document
from edgefl.local_rules import most_upload_bytes, rule_of
from edgefl.values import RuleSettings, Submodel, digest_of, dumps
from edgefl.wire import Bits, Counts, Dense, Payload, Slice, Sparse, decode_result, encode_result
from edgefl.wire.envelope import header_bytes
from tests.strategies.contract import CASES, GRAPH, Done, played, strategy

every_strategy = pytest.mark.parametrize("case", CASES)
BY_NEW_MASK = {"channel_pruning", "pruned_noise", "weight_pruning"}
"""Rules whose update has the shapes of the mask that comes with it; the plan names the planned ones."""
SMALLER_OR_LARGER = {"float32": np.float64, "int64": np.int32, "uint8": np.int32}


@every_strategy
def test_what_a_rule_produced_arrives_as_it_was_and_is_taken(case: str) -> None:
    made = strategy(case)
    for one in played(case):
        for done in one.done.values():
            sent, came = done.report, decode_result(done.body, GRAPH)
            assert (came.result, came.mask, came.seed) == (sent.result, done.planned.mask.digest, sent.seed)
            assert (came.next_mask and came.next_mask.digest) == (sent.next_mask and sent.next_mask.digest)
            assert came.tensors.keys() == sent.tensors.keys()
            for name, payload in sent.tensors.items():
                assert_same(payload, came.tensors[name])
            made.check(done.client_update)
            assert encode_result(came, GRAPH) == done.body


@every_strategy
def test_the_plan_names_what_the_rule_sends(case: str) -> None:
    """The document of `plan.tensors` beside the payloads that the rule really made."""
    for one in played(case):
        for done in one.done.values():
            rule = rule_of(done.planned.rule)
            named = submodel_document(rule.trains(done.planned.mask), rule.sends(done.planned.mask))
            assert digest_of(dumps(named).encode()) == done.plan.tensors
            assert sent_by(named).keys() == done.report.tensors.keys()
            left = done.report.next_mask if done.planned.rule.name in BY_NEW_MASK else None
            for name, payload in done.report.tensors.items():
                codec, shape, dtype = sent_by(named)[name]
                assert payload.codec == codec
                assert payload.shape == (shape if left is None else rule.sends(left)[name].shape)
                assert dtype is None or values_dtype(payload) == dtype


def sent_by(named: Submodel) -> dict[str, tuple[str, tuple[int, ...], str | None]]:
    """Codec, shape and dtype of every payload, as a client reads them out of the document."""
    found = {t.name: (t.sent, t.shape, None if t.sent in ("bits", "counts") else t.dtype) for t in named.tensors}
    own = {name: (codec, shape, dtype) for name, (codec, shape, dtype) in found.items() if codec is not None}
    return own | {payload.name: (payload.codec, payload.shape, payload.dtype) for payload in named.payloads}


def values_dtype(payload: Payload) -> str:
    assert isinstance(payload, Dense | Sparse)
    return str((payload.array if isinstance(payload, Dense) else payload.values).dtype)


@every_strategy
def test_another_upload_than_the_rules_is_refused(case: str) -> None:
    made, tried = strategy(case), dict.fromkeys(("missing", "shape", "dtype", "codec", "surplus"), 0)
    for done in one_of_each_rule(case):
        for kind, tensors in spoilt(done.report.tensors):
            body = encode_result(replace(done.report, tensors=tensors), GRAPH)
            came = decode_result(body, GRAPH)
            with pytest.raises(WireFormatError):
                made.check(replace(done.client_update, tensors=came.tensors))
            tried[kind] += 1
    assert all(tried.values()) or case == "local"  # which sends nothing that could be spoilt
    assert tried["surplus"]


@every_strategy
def test_no_update_is_larger_than_its_plan_allows(case: str) -> None:
    nothing = RuleSettings(name="local_training")
    for one in played(case):
        for done in one.done.values():
            mask, bound = done.planned.mask, most_upload_bytes(done.planned.rule, done.planned.mask)
            around, tensors = most_upload_bytes(nothing, mask), len(done.body) - header_bytes(done.body)
            assert tensors <= bound - around
            assert header_bytes(done.body) <= around / 4
            if case in ("fedavg", "fedmrn", "signsgd", "eden", "random_subsampling"):
                assert bound - around <= 1.05 * tensors


def one_of_each_rule(case: str) -> list[Done]:
    """The upload of the device without limits, once for every rule that it was given."""
    found = {one.done["free"].planned.rule.name: one.done["free"] for one in played(case)}
    return list(found.values())


def spoilt(tensors: Mapping[str, Payload]) -> Iterator[tuple[str, dict[str, Payload]]]:
    """Every tensor in its turn missing, of another shape, dtype or codec; and one too many."""
    yield "surplus", {**tensors, "surplus": Dense(np.zeros(1, np.float32))}
    for name, payload in tensors.items():
        yield "missing", {other: kept for other, kept in tensors.items() if other != name}
        yield "shape", {**tensors, name: of_another_shape(payload)}
        yield "codec", {**tensors, name: of_another_codec(payload)}
        if (converted := of_another_dtype(payload)) is not None:
            yield "dtype", {**tensors, name: converted}


def of_another_shape(payload: Payload) -> Payload:
    """The same entries with one more axis."""
    if isinstance(payload, Dense):
        return Dense(payload.array[..., None])
    assert not isinstance(payload, Slice)
    return replace(payload, shape=(*payload.shape, 1))


def of_another_dtype(payload: Payload) -> Payload | None:
    """The same numbers in another dtype; None where they have none."""
    if isinstance(payload, Dense):
        return Dense(payload.array.astype(SMALLER_OR_LARGER[payload.array.dtype.name]))
    if isinstance(payload, Sparse):
        return replace(payload, values=payload.values.astype(SMALLER_OR_LARGER[payload.values.dtype.name]))
    return None


def of_another_codec(payload: Payload) -> Payload:
    """About the same numbers, written in another way."""
    if isinstance(payload, Dense):
        return Bits.of(payload.array != 0)
    if isinstance(payload, Sparse):
        return Dense(payload.to_dense())
    assert isinstance(payload, Bits | Counts)
    numbers = payload.to_bool() if isinstance(payload, Bits) else payload.to_array()
    return Dense(numbers.astype(np.float32))


def assert_same(one: Payload, other: Payload) -> None:
    assert type(one) is type(other)
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype
            assert left.shape == right.shape
            assert np.array_equal(left, right)
        else:
            assert left == right
