"""Networks of the papers, described by hand, for examples, benchmarks and tests without torch."""

from edgefl.model_graph import GraphBuilder, ModelGraph, Signal

__all__ = ["character_lstm", "cnn4", "preresnet18"]


def cnn4(classes: int = 10, *, norm_groups: int = 1) -> ModelGraph:
    """FedMRN's CNN for 28 x 28 images: 389,920 weights that it masks and 960 of norms."""
    build = GraphBuilder("cnn4", channels=1, positions=28 * 28)
    x, side = build.input, 28
    for number, channels in enumerate((32, 64, 128, 256), start=1):
        build.begin_block(f"block{number}")
        x = build.conv(f"conv{number}", x, channels, kernel=3, positions=side * side)
        x = build.norm(f"norm{number}", x, groups=norm_groups)
        side //= 2
        x = build.pool(x, positions=side * side)
    build.begin_block(None)
    build.linear("head", build.flatten(x), classes, bias=False, head=True)
    return build.finish()


def preresnet18(classes: int = 10) -> ModelGraph:
    """PerFedMask's PreResNet18 for 32 x 32 images, batch norm without running statistics: 11,172,170 parameters."""
    build = GraphBuilder("preresnet18", channels=3, positions=32 * 32)
    build.begin_block("stem")
    x = build.conv("stem", build.input, 64, kernel=3, positions=32 * 32)
    for stage, channels in enumerate((64, 128, 256, 512)):
        for unit in range(2):
            side = 32 >> stage
            shortcut = stage > 0 and unit == 0
            build.begin_block(f"stage{stage}.{unit}")
            x = _preactivation(build, f"stage{stage}.{unit}", x, channels, side * side, shortcut)
    build.begin_block(None)
    x = build.pool(build.norm("norm", x), positions=1)
    build.linear("head", x, classes, head=True)
    return build.finish()


def _preactivation(build: GraphBuilder, name: str, x: Signal, channels: int, positions: int, shortcut: bool) -> Signal:
    inner = build.norm(f"{name}.norm1", x)
    residual = x
    if shortcut:
        residual = build.conv(f"{name}.shortcut", inner, channels, kernel=1, positions=positions)
    inner = build.conv(f"{name}.conv1", inner, channels, kernel=3, positions=positions)
    inner = build.norm(f"{name}.norm2", inner)
    inner = build.conv(f"{name}.conv2", inner, channels, kernel=3, positions=positions)
    return build.add(residual, inner)


def character_lstm(words: int = 80, *, steps: int = 80) -> ModelGraph:
    """Build the two-layer character model of the LEAF benchmark: embedding 8, two LSTM layers of 256."""
    build = GraphBuilder("character_lstm", channels=1, positions=steps)
    x = build.embedding("embedding", words, 8, steps=steps)
    x = build.lstm("lstm1", x, 256)
    x = build.lstm("lstm2", x, 256)
    build.linear("head", build.pool(x, positions=1), words, head=True)
    return build.finish()
