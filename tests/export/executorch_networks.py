"""Small networks as people write them, for tests of ExecuTorch programs; some know their widths as numbers."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["CLASSES", "NETWORKS", "Recurrent", "VisionTransformer"]

CLASSES = 5


class Attention(nn.Module):
    """Self-attention as timm writes it: heads and their width are attributes, and so is the scale."""

    def __init__(self, dim: int, num_heads: int, *, fused: bool, drop: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = dim // num_heads
        self.scale = self.head_dim**-0.5
        self.fused_attn = fused
        self.qkv = nn.Linear(dim, dim * 3)
        self.attn_drop = nn.Dropout(drop)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(drop)

    def forward(self, x: Tensor) -> Any:
        batch, count, width = x.shape
        qkv = self.qkv(x).reshape(batch, count, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        if self.fused_attn:
            dropout = self.attn_drop.p if self.training else 0.0
            x = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        else:
            scores = (q * self.scale) @ k.transpose(-2, -1)
            x = self.attn_drop(scores.softmax(dim=-1)) @ v
        return self.proj_drop(self.proj(x.transpose(1, 2).reshape(batch, count, width)))


class Mlp(nn.Module):
    def __init__(self, dim: int, hidden: int, drop: float = 0.0) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2, self.drop = (
            nn.Linear(dim, hidden),
            nn.GELU(),
            nn.Linear(hidden, dim),
            nn.Dropout(drop),
        )

    def forward(self, x: Tensor) -> Any:
        return self.drop(self.fc2(self.act(self.fc1(x))))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, *, fused: bool, drop: float) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), Attention(dim, heads, fused=fused, drop=drop)
        self.norm2, self.mlp = nn.LayerNorm(dim), Mlp(dim, dim * 2, drop)
        self.gamma = nn.Parameter(torch.full((dim,), 0.5))

    def forward(self, x: Tensor) -> Any:
        x = x + self.gamma * self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Patches, a class token, positions, blocks, and a head that reads the token."""

    def __init__(self, dim: int = 16, heads: int = 2, *, fused: bool = True, drop: float = 0.0) -> None:
        super().__init__()
        self.embed_dim = dim
        self.patch_embed = nn.Conv2d(3, dim, 4, 4)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, 5, dim))
        self.blocks = nn.Sequential(Block(dim, heads, fused=fused, drop=drop))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, CLASSES)

    def forward(self, x: Tensor) -> Any:
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class Encoder(nn.Module):
    """torch's own encoder, whose attention checks its width against a number."""

    def __init__(self, *, drop: float = 0.0, batch_first: bool = True) -> None:
        super().__init__()
        self.embed, self.batch_first = nn.Linear(6, 16), batch_first
        layer = nn.TransformerEncoderLayer(16, 2, 24, dropout=drop, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Any:
        x = self.embed(x)
        x = x if self.batch_first else x.transpose(0, 1)
        hidden = torch.full((5, 5), -math.inf).triu(1)
        return self.head(self.encoder(x, hidden).mean(1 if self.batch_first else 0))


class InvertedResidual(nn.Module):
    """A block of MobileNet v3 or EfficientNet: expansion, depthwise convolution, squeeze and excitation, projection."""

    def __init__(self, activation: type[nn.Module]) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), activation())
        self.expand = nn.Sequential(nn.Conv2d(8, 12, 1, bias=False), nn.BatchNorm2d(12), activation())
        self.deep = nn.Sequential(nn.Conv2d(12, 12, 3, 1, 1, groups=12), nn.BatchNorm2d(12), activation())
        self.squeeze, self.excite = nn.Conv2d(12, 4, 1), nn.Conv2d(4, 12, 1)
        self.project = nn.Sequential(nn.Conv2d(12, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(8, CLASSES))

    def forward(self, x: Tensor) -> Any:
        x = self.stem(x)
        y = self.deep(self.expand(x))
        gate = self.excite(functional.relu(self.squeeze(functional.adaptive_avg_pool2d(y, 1))))
        return self.head((x + self.project(y * functional.hardsigmoid(gate))).mean((2, 3)))


class Mixer(nn.Module):
    """MLP-Mixer: one MLP along the patches, one along the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.patch_embed, self.norm1, self.norm2 = nn.Conv2d(3, 12, 4, 4), nn.LayerNorm(12), nn.LayerNorm(12)
        self.tokens, self.channels, self.head = Mlp(4, 6), Mlp(12, 20), nn.Linear(12, CLASSES)

    def forward(self, x: Tensor) -> Any:
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return self.head((x + self.channels(self.norm2(x))).mean(1))


class ConvNext(nn.Module):
    """A block of ConvNeXt: a wide depthwise convolution, then a norm and an MLP with the channels last."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.deep, self.norm = (
            nn.Conv2d(3, 8, 2, 2),
            nn.Conv2d(8, 8, 7, padding=3, groups=8),
            nn.LayerNorm(8),
        )
        self.mlp, self.gamma, self.head = Mlp(8, 16), nn.Parameter(torch.full((8,), 0.5)), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Any:
        x = self.stem(x)
        y = self.gamma * self.mlp(self.norm(self.deep(x).permute(0, 2, 3, 1)))
        return self.head((x + y.permute(0, 3, 1, 2)).mean((2, 3)))


class UNet(nn.Module):
    """Down, up by a transposed convolution, and the detail of the way down beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(1, 6, 3, padding=1), nn.Conv2d(6, 8, 3, padding=1)
        self.up, self.merge = nn.ConvTranspose2d(8, 6, 2, 2), nn.Conv2d(12, 6, 3, padding=1)
        self.out = nn.Conv2d(6, 1, 1)

    def forward(self, x: Tensor) -> Any:
        fine = functional.relu(self.down1(x))
        coarse = functional.relu(self.down2(functional.max_pool2d(fine, 2)))
        return self.out(functional.relu(self.merge(torch.cat([self.up(coarse), fine], 1))))


class Words(nn.Module):
    """The mean of word vectors, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.hidden, self.head = nn.Embedding(20, 8), nn.Linear(8, 12), nn.Linear(12, CLASSES)

    def forward(self, x: Tensor) -> Any:
        return self.head(functional.relu(self.hidden(self.embedding(x).mean(1))))


class Recurrent(nn.Module):
    """Word vectors, a recurrent module, and a head that reads its last step."""

    def __init__(self, kind: Callable[..., nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.body = kind(6, 8, batch_first=True, **options)
        self.head = nn.Linear(16 if self.body.bidirectional else 8, CLASSES)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.body(self.embedding(x))[0][:, -1])


def dropouts() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Dropout2d(0.25), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(8 * 9, 12), nn.ReLU(), nn.Dropout(0.5), nn.Linear(12, CLASSES)),
    )


def around(pool: nn.Module, entries: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), pool, nn.Flatten(), nn.Linear(6 * entries, CLASSES))


def sequences() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv1d(3, 8, 5, 2, 2), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(8, 8, 3, groups=8)),
        *(nn.ReLU(), nn.AdaptiveMaxPool1d(3), nn.AdaptiveAvgPool1d(2), nn.Flatten(), nn.Linear(16, CLASSES)),
    )


def keywords() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 8, (10, 4), 2, (5, 1), bias=False), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 12, 1)),
        *(nn.ReLU(), nn.AvgPool2d((6, 4)), nn.Flatten(), nn.Linear(12, CLASSES)),
    )


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "vision transformer": (VisionTransformer, (3, 8, 8)),
    "vision transformer, written out, with dropout": (lambda: VisionTransformer(fused=False, drop=0.1), (3, 8, 8)),
    "vision transformer, fused, with dropout": (lambda: VisionTransformer(drop=0.1), (3, 8, 8)),
    "encoder": (Encoder, (5, 6)),
    "encoder, steps first, with dropout": (lambda: Encoder(drop=0.1, batch_first=False), (5, 6)),
    "MobileNet v3": (lambda: InvertedResidual(nn.Hardswish), (3, 8, 8)),
    "EfficientNet": (lambda: InvertedResidual(nn.SiLU), (3, 8, 8)),
    "MLP-Mixer": (Mixer, (3, 8, 8)),
    "ConvNeXt": (ConvNext, (3, 8, 8)),
    "U-Net": (UNet, (1, 8, 8)),
    "DS-CNN": (keywords, (1, 12, 10)),
    "Conv1d": (sequences, (3, 24)),
    "mean of words": (Words, (6,)),
    "dropout": (dropouts, (1, 8, 8)),
    "uneven adaptive average pool": (lambda: around(nn.AdaptiveAvgPool2d(3), 9), (1, 7, 7)),
    "uneven adaptive max pool": (lambda: around(nn.AdaptiveMaxPool2d((3, 2)), 6), (1, 7, 7)),
    "LSTM": (lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True), (4,)),
    "GRU": (lambda: Recurrent(nn.GRU), (4,)),
    "GRU without biases": (lambda: Recurrent(nn.GRU, bias=False), (4,)),
    "RNN": (lambda: Recurrent(nn.RNN), (4,)),
    "RNN of ReLUs": (lambda: Recurrent(nn.RNN, nonlinearity="relu"), (4,)),
}
"""Name -> how it is made, and the shape of a sample."""
WORDS = ("mean of words", "LSTM", "GRU", "GRU without biases", "RNN", "RNN of ReLUs")
"""Networks that read whole numbers below 20."""
