"""Attention against PyTorch: masks, heads that are cut, and transformer blocks."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from edgefl.errors import ExportError
from edgefl.masks import Mask, gather
from edgefl.model_graph import cost_of
from export.inference_graph import inference_graph
from export.ops.dropout import seed_input
from export.shared_dropout_noise import SharedDropoutNoise
from tests.export.parity import Exported, assert_close, check, random_mask

STEPS, EMBED, HEADS, HEAD, CLASSES = 5, 8, 2, 6, 4


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


class Attention(nn.Module):
    """Self-attention of several heads, written so that PyTorch accepts any width."""

    def __init__(self, *, embed: int = EMBED, biased: bool = False, **options: Any) -> None:
        super().__init__()
        self.embed = nn.Linear(3, embed)
        self.qkv = nn.Linear(embed, 3 * HEADS * HEAD)
        self.out = nn.Linear(HEADS * HEAD, embed)
        self.bias = nn.Parameter(torch.randn(HEADS, STEPS, STEPS)) if biased else None
        self.options = options
        self.head = nn.Linear(embed, CLASSES)

    def forward(self, x: Tensor) -> Any:
        x = self.embed(x)
        q, k, v = (p.unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        options = self.options if self.bias is None else {"attn_mask": self.bias}
        attended = scaled_dot_product_attention(q, k, v, **options).transpose(1, 2).flatten(2)
        return self.head((x + self.out(attended)).mean(1))


def example() -> Tensor:
    return torch.randn(3, STEPS, 3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": torch.ones(STEPS, STEPS).tril().bool()},
        {"attn_mask": torch.randn(STEPS, STEPS)},
        {"attn_mask": torch.full((STEPS, STEPS), -math.inf).triu(1)},
        {"attn_mask": torch.randn(1, HEADS, 1, STEPS)},
    ],
    ids=["plain", "causal", "scale", "flags", "numbers", "infinite", "by head"],
)
def test_attention_matches(options: dict[str, Any]) -> None:
    exported = check(Attention(**options), example(), classes=CLASSES)
    widths = {group.name: (group.width, group.spans[0].stacks) for group in exported.graph.groups}
    assert widths == {"embed": (EMBED, 1), "qkv": (HEAD, 3 * HEADS)}


def test_a_learned_bias_of_the_scores_matches() -> None:
    check(Attention(biased=True), example(), classes=CLASSES)


def test_the_products_of_attention_are_counted() -> None:
    exported = Exported(Attention(), example())
    products = HEADS * STEPS * STEPS * HEAD * 2
    linear = STEPS * (3 * EMBED + 4 * EMBED * HEADS * HEAD) + EMBED * CLASSES
    assert cost_of(exported.graph).forward_multiply_adds == products + linear
    half = cost_of(exported.graph, {"qkv": HEAD // 2})
    assert (
        half.forward_multiply_adds == products // 2 + STEPS * (3 * EMBED + 2 * EMBED * HEADS * HEAD) + EMBED * CLASSES
    )


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(EMBED)
        self.qkv = nn.Linear(EMBED, 3 * HEADS * HEAD)
        self.out = nn.Linear(HEADS * HEAD, EMBED)
        self.norm2 = nn.LayerNorm(EMBED)
        self.mlp = nn.Sequential(nn.Linear(EMBED, 20), nn.GELU(), nn.Linear(20, EMBED))

    def forward(self, x: Tensor) -> Any:
        y = self.norm1(x)
        q, k, v = (p.unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in self.qkv(y).chunk(3, -1))
        x = x + self.out(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """Words, positions, blocks, and a head that is the table of words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(13, EMBED)
        self.places = nn.Parameter(torch.randn(1, 9, EMBED))
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(EMBED)
        self.head = nn.Linear(EMBED, 13, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x: Tensor) -> Any:
        x = self.words(x) + self.places[:, : x.shape[1]]
        return self.head(self.norm(self.blocks(x))[:, -1])


def test_a_transformer_with_tied_words_matches() -> None:
    exported = check(Transformer(), torch.arange(21).reshape(3, 7) % 13, classes=13, masks=0)
    widths = sorted(group.width for group in exported.graph.groups)
    assert widths == sorted([EMBED, HEAD, HEAD, 20, 20])
    x, y = torch.randint(13, (6, 7)), torch.arange(6)
    generator = np.random.default_rng(0)
    for _ in range(3):
        # A layer norm over one channel has nothing but rounding errors for a gradient, in PyTorch as well.
        kept = {
            g.name: generator.permutation(g.width)[: generator.integers(3, g.width + 1)] for g in exported.graph.groups
        }
        part = gather(Mask.of(exported.graph, kept=kept), exported.weights())
        assert_close(exported.run(part, x, y), exported.torch_run(part, x, y))


class Module(nn.Module):
    """nn.MultiheadAttention as it is commonly called."""

    def __init__(self, *, batch_first: bool, need_weights: bool, causal: bool = False) -> None:
        super().__init__()
        self.embed = nn.Linear(3, HEADS * HEAD)
        self.mha = nn.MultiheadAttention(HEADS * HEAD, HEADS, batch_first=batch_first)
        self.head = nn.Linear(HEADS * HEAD, CLASSES)
        self.need_weights = need_weights
        self.visible: Tensor | None
        self.register_buffer("visible", torch.ones(STEPS, STEPS).tril().bool() if causal else None)

    def forward(self, x: Tensor) -> Any:
        x = self.embed(x) if self.mha.batch_first else self.embed(x).transpose(0, 1)
        mask = None if self.visible is None else ~self.visible
        attended, _ = self.mha(x, x, x, need_weights=self.need_weights, attn_mask=mask)
        return self.head((x + attended).mean(1 if self.mha.batch_first else 0))


NAMES = {"mha.in_proj_weight": "qkv.weight", "mha.in_proj_bias": "qkv.bias"}


def in_plain_words(name: str) -> str:
    prefix, _, rest = name.rpartition(":")
    rest = NAMES.get(rest, rest.replace("mha.out_proj", "out"))
    return f"{prefix}:{rest}" if prefix else rest


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("batch_first", [True, False])
def test_multihead_attention_of_torch_matches_at_any_width(batch_first: bool, need_weights: bool, causal: bool) -> None:
    exported = check(
        Module(batch_first=batch_first, need_weights=need_weights, causal=causal), example(), classes=CLASSES, masks=0
    )
    widths = sorted((group.width, group.spans[0].stacks) for group in exported.graph.groups)
    assert widths == [(HEAD, 3 * HEADS), (HEADS * HEAD, 1)]
    # torch's module knows its width as a number, so narrow ones are compared with the same written out. With
    # need_weights it scales by the width as that number; without, by the width it sees.
    options: dict[str, Any] = {"is_causal": causal} | ({"scale": HEAD**-0.5} if need_weights else {})
    plain = Exported(Attention(embed=HEADS * HEAD, **options), example())
    generator = np.random.default_rng(0)
    x, y = torch.randn(4, STEPS, 3), torch.arange(4)
    for _ in range(2):
        part = gather(random_mask(exported.graph, generator), exported.weights())
        ours = {in_plain_words(name): array for name, array in exported.run(part, x, y).items()}
        theirs = plain.torch_run({in_plain_words(name): array for name, array in part.items()}, x, y)
        assert_close(ours, theirs)


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_encoder_layer_of_torch_matches(norm_first: bool) -> None:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(
                8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm_first
            )
            self.head = nn.Linear(8, CLASSES)

        def forward(self, x: Tensor) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            out: Tensor = self.head(self.layer(x, mask)[:, -1])
            return out

    exported = check(Encoder(), torch.randn(3, STEPS, 8), classes=CLASSES, masks=0, batch=6)
    assert sorted(group.width for group in exported.graph.groups) == [4, 16]


@pytest.mark.parametrize("need_weights", [False, True])
def test_dropout_inside_attention_draws_from_the_seed(need_weights: bool) -> None:
    model = Module(batch_first=True, need_weights=need_weights, causal=True)
    model.mha.dropout = 0.4
    exported = Exported(model, example())
    x, y = torch.randn(6, STEPS, 3), torch.arange(6) % CLASSES
    found = exported.run({**exported.weights(), "seed": seed_input(2**63 + 5)}, x, y)
    with SharedDropoutNoise(2**63 + 5):
        assert_close(found, exported.torch_run(exported.weights(), x, y))
    with pytest.raises(AssertionError, match="relative error"):
        assert_close(found, exported.torch_run(exported.weights(), x, y))  # with torch's own random numbers


def test_what_attention_cannot_do_is_said() -> None:
    with pytest.raises(ExportError, match=r"drops values with probability 0\.5 when it predicts\. Pass dropout_p=0\.0"):
        inference_graph(Attention(dropout_p=0.5), example())

    class Grouped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(3, 8)

        def forward(self, x: Tensor) -> Any:
            heads = self.body(x).unflatten(-1, (4, 2)).transpose(1, 2)
            out = scaled_dot_product_attention(heads, heads[:, :2], heads[:, 2:], enable_gqa=True)
            return out.mean((1, 2))

    with pytest.raises(ExportError, match=r"4 query heads share 2 key heads\. Repeat keys"):
        Exported(Grouped(), example())
