"""Depthwise convolutions as shifted products.

ONNX fixes the number of groups in the file, and a depthwise convolution has as many groups as channels, so it needs
another form at a free width. Every tap of the kernel is a product of a slice of the image with one weight per channel,
and the same holds for its gradients. Once weights are baked in, the width is known: the note on the node lets
`edgefl.artifacts.bake` restore the original convolution.
"""

import json
from collections.abc import Callable, Sequence

from edgefl.artifacts.bake import DEPTHWISE
from export.axes import ConstantFactor
from export.ops.conv_window import ConvWindow, padded, tap_slice
from export.trace import Trace, Value

__all__ = ["depthwise"]

Step = Callable[[str], None]


def _depthwise_input_gradient(t: Trace, grad: str, weights: Sequence[str], window: ConvWindow) -> str:
    """Return the input's gradient: the flipped kernel over the output's gradient, spread out by the stride."""
    spread = _spread(t, grad, window)
    reach = [step * (taps - 1) for step, taps in zip(window.dilation, window.kernel, strict=True)]
    before = [far - pad for far, pad in zip(reach, window.padding, strict=True)]
    after = [far - pad + extra for far, pad, extra in zip(reach, window.padding, window.output_padding, strict=True)]
    # Negative padding crops: a kernel that is smaller than its padding.
    padded = t.emit.one("Pad", spread, t.emit.integers(0, 0, *before, 0, 0, *after))
    shares = []
    for (row, column), weight in zip(window.taps(), weights, strict=True):
        begin = [reach[0] - row * window.dilation[0], reach[1] - column * window.dilation[1]]
        ends = [place + size for place, size in zip(begin, window.inside, strict=True)]
        piece = t.emit.one("Slice", padded, t.emit.integers(*begin), t.emit.integers(*ends), t.emit.integers(2, 3))
        shares.append(t.emit.one("Mul", piece, weight))
    return t.emit.one("Sum", *shares) if len(shares) > 1 else shares[0]


def depthwise(t: Trace, x: Value, weight: Value, window: ConvWindow) -> tuple[str, Step]:
    """Emit a depthwise convolution without its bias; return its output and its backward step."""
    taps = list(window.taps())
    around = padded(t, x, window)
    pieces = [tap_slice(t, around, window, tap) for tap in taps]
    # [channels, 1, taps]: a slice of one tap then broadcasts over the positions.
    flat = t.reshape(weight.name, weight.axes, (weight.axes[0], (), (ConstantFactor(len(taps)),)))
    weights = (
        t.emit.node("Split", [flat], outputs=len(taps), axis=2, num_outputs=len(taps)) if len(taps) > 1 else (flat,)
    )
    products = [t.emit.one("Mul", piece, w) for piece, w in zip(pieces, weights, strict=True)]
    name = t.emit.one("Sum", *products) if len(products) > 1 else products[0]
    t.emit.note(name, DEPTHWISE, json.dumps({"inputs": [x.name, weight.name], **window.attributes()}, sort_keys=True))

    def step(grad: str) -> None:
        over = t.emit.integers(0, 2, 3)
        sums = [t.emit.one("ReduceSum", t.emit.one("Mul", grad, piece), over, keepdims=0) for piece in pieces]
        last = t.emit.integers(1)
        stacked = t.emit.one("Concat", *(t.emit.one("Unsqueeze", one, last) for one in sums), axis=1)
        t.add_gradient(weight, t.reshape(stacked, (weight.axes[0], ()), weight.axes))
        if x.trains:
            t.add_gradient(x, _depthwise_input_gradient(t, grad, weights, window))

    return name, step


def _spread(t: Trace, grad: str, window: ConvWindow) -> str:
    """Insert zeros between the entries of a gradient, as many as the stride skipped."""
    for place, stride, size in zip((2, 3), window.stride, window.outside, strict=True):
        if stride > 1:
            wide = t.emit.one("Unsqueeze", grad, t.emit.integers(place + 1))
            pads = [0] * 10
            pads[5 + place + 1] = stride - 1
            zeros = t.emit.one("Pad", wide, t.emit.integers(*pads))
            # 0 copies the preceding sizes; the merged axis has stride times its size, minus the zeros at the end.
            shape = [0, 0, *window.outside]
            shape[2] = (
                size * stride if place == 2 else window.outside[0] + (window.stride[0] - 1) * (window.outside[0] - 1)
            )
            shape[3] = window.outside[1] if place == 2 else size * stride
            merged = t.emit.one("Reshape", zeros, t.emit.integers(*shape))
            end = size + (stride - 1) * (size - 1)
            grad = t.emit.one("Slice", merged, t.emit.integers(0), t.emit.integers(end), t.emit.integers(place))
    return grad
