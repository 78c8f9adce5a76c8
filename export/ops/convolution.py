"""Convolutions of images and sequences; the form of each gradient depends on the shape.

    gradient of the input     a transposed convolution; a matrix product for 1 x 1 kernels
    gradient of the weight    1 x 1: one matrix product
                              few input channels: unfolded patches (im2col) and one product
                              else: one product for every tap of the kernel, on shifted slices
    small maps                both, and the forward pass, on the patches of the whole batch: see `patches`
    depthwise                 shifted products: ONNX's `group` is fixed in the file, the width is not

Measured on onnxruntime, one thread, batch 32: a convolution with swapped axes instead of the products is about half
as fast, Einsum slower still.
"""

from collections.abc import Callable, Sequence
from typing import Any

from edgefl.errors import ExportError
from export.axes import Axis, ConstantFactor, split, unify
from export.ops.conv_window import ConvWindow, channels_first, pair, shifted_taps, transposed_window, window_of
from export.ops.depthwise import depthwise
from export.ops.patches import by_patches, is_small
from export.ops.shapes import squeeze, unsqueeze
from export.trace import Trace, Value

__all__ = ["OPERATIONS"]

FEW_CHANNELS = 4


def conv2d(
    t: Trace,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] | str = (0, 0),
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
) -> Value:
    """A convolution of images."""
    window = window_of(x, weight, stride, padding, dilation)
    is_depthwise = groups == x.shape[1] == weight.shape[0] and groups > 1
    if is_depthwise:
        unify(weight.axes[0], x.axes[1])
        unify(weight.axes[1], (ConstantFactor(1),))
    else:
        _agree(x, weight, groups)
    for place in (2, 3):
        unify(weight.axes[place], (ConstantFactor(weight.shape[place]),))
    if bias is not None:
        unify(bias.axes[0], weight.axes[0])
    axes = (x.axes[0], weight.axes[0], (ConstantFactor(window.outside[0]),), (ConstantFactor(window.outside[1]),))
    if is_depthwise:
        return _finish(t, x, weight, bias, axes, window, *depthwise(t, x, weight, window))
    if t.training and groups == 1 and is_small(x, window):
        return _finish(t, x, weight, bias, axes, window, *by_patches(t, x, weight, bias, window, axes), biased=True)
    attributes = window.attributes(group=groups)
    name = t.emit.one("Conv", x.name, weight.name, *([bias.name] if bias else []), **attributes)
    backward = _backward(t, x, weight, window, groups, axes)
    return _finish(t, x, weight, bias, axes, window, name, backward, biased=True)


def conv_transpose2d(
    t: Trace,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    output_padding: Sequence[int] = (0, 0),
    groups: int = 1,
    dilation: Sequence[int] = (1, 1),
) -> Value:
    """A transposed convolution: the input gradient of a convolution, so its own gradients are a convolution's."""
    if groups != 1:
        raise ExportError(
            f"a transposed convolution with {groups} groups is not supported", fix="Use groups=1, or an upsampling."
        )
    unify(weight.axes[0], x.axes[1])
    for place in (2, 3):
        unify(weight.axes[place], (ConstantFactor(weight.shape[place]),))
    if bias is not None:
        unify(bias.axes[0], weight.axes[1])
    window = transposed_window(x, weight, pair(stride), pair(padding), pair(output_padding), pair(dilation))
    axes = (x.axes[0], weight.axes[1], (ConstantFactor(window.inside[0]),), (ConstantFactor(window.inside[1]),))
    attributes = window.attributes(output_padding=list(pair(output_padding)))
    name = t.emit.one("ConvTranspose", x.name, weight.name, *([bias.name] if bias else []), **attributes)

    def step(grad: str) -> None:
        if x.trains:
            t.add_gradient(x, t.emit.one("Conv", grad, weight.name, **window.attributes()))
        # For the convolution that this one transposes, x is the gradient and the gradient is the input.
        t.add_gradient(weight, _weight_gradient(t, x.name, Value(grad, axes), weight, window, x.axes))

    return _finish(t, x, weight, bias, axes, window, name, step, biased=True)


def conv1d(
    t: Trace,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] | str = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Value:
    """A convolution of sequences: images of one row."""
    margin = padding if isinstance(padding, str) else (0, *padding)
    rows = unsqueeze(t, x, 2), unsqueeze(t, weight, 2)
    return squeeze(t, conv2d(t, *rows, bias, (1, *stride), margin, (1, *dilation), groups), 2)


def conv_transpose1d(
    t: Trace,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    output_padding: Sequence[int] = (0,),
    groups: int = 1,
    dilation: Sequence[int] = (1,),
) -> Value:
    """A transposed convolution of sequences."""
    rows = unsqueeze(t, x, 2), unsqueeze(t, weight, 2)
    sizes = (1, *stride), (0, *padding), (0, *output_padding)
    return squeeze(t, conv_transpose2d(t, *rows, bias, *sizes, groups, (1, *dilation)), 2)


Step = Callable[[str], None]


def _finish(
    t: Trace,
    x: Value,
    weight: Value,
    bias: Value | None,
    axes: tuple[Axis, ...],
    window: ConvWindow,
    name: str,
    step: Step,
    biased: bool = False,
) -> Value:
    if bias is not None and not biased:
        name = t.emit.one("Add", name, t.reshape(bias.name, bias.axes, (bias.axes[0], (), ())))
    positions = window.outside[0] * window.outside[1]
    parameters = {weight: positions, **({bias: 0} if bias else {})}
    out = t.layer("conv", parameters, [x], t.value(name, axes, x, weight))

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        if bias is not None:
            t.add_gradient(bias, t.emit.one("ReduceSum", gradients[0], t.emit.integers(0, 2, 3), keepdims=0))
        step(gradients[0])

    t.backward(out, backward)
    return out


def _agree(x: Value, weight: Value, groups: int) -> None:
    """Bind the weight's input channels to those of x, group by group if there are groups."""
    if groups == 1:
        unify(weight.axes[1], x.axes[1])
        return
    count = ConstantFactor(groups)
    unify(x.axes[1], (count, *weight.axes[1]))
    inner = split([weight.axes[0]], [groups, weight.shape[0] // groups])
    unify(weight.axes[0], (count, *inner[1]))


def _backward(t: Trace, x: Value, weight: Value, window: ConvWindow, groups: int, axes: tuple[Axis, ...]) -> Step:
    def step(grad: str) -> None:
        if x.trains:
            attributes = window.attributes(group=groups, output_padding=window.output_padding)
            t.add_gradient(x, t.emit.one("ConvTranspose", grad, weight.name, **attributes))
        if groups > 1:
            gradient = _grouped_weight_gradient(t, grad, x, weight, window, groups)
        elif window.is_pointwise:
            gradient = _pointwise_weight_gradient(t, grad, x, weight, axes)
        else:
            gradient = _weight_gradient(t, grad, x, weight, window, axes)
        t.add_gradient(weight, gradient)

    return step


def _pointwise_weight_gradient(t: Trace, grad: str, x: Value, weight: Value, axes: tuple[Axis, ...]) -> str:
    product = t.emit.one("Gemm", channels_first(t, grad, axes), channels_first(t, x.name, x.axes), transB=1)
    return t.reshape(product, weight.axes[:2], weight.axes)


def _weight_gradient(t: Trace, grad: str, x: Value, weight: Value, window: ConvWindow, axes: tuple[Axis, ...]) -> str:
    rows = channels_first(t, grad, axes)
    slices = shifted_taps(t, x, window)
    taps = (ConstantFactor(window.kernel[0] * window.kernel[1]),)
    many: Axis = (*x.axes[0], *axes[2], *axes[3])
    flat = [t.reshape(piece, (x.axes[1], x.axes[0], axes[2], axes[3]), (x.axes[1], many)) for piece in slices]
    if x.shape[1] <= FEW_CHANNELS:
        patches = t.emit.one("Concat", *flat, axis=0)  # taps, then channels
        product = t.emit.one("Gemm", rows, patches, transB=1)
        product = t.reshape(product, (weight.axes[0], ()), (weight.axes[0], taps, weight.axes[1]))
        product = t.emit.one("Transpose", product, perm=[0, 2, 1])
    else:
        products = [t.emit.one("Gemm", rows, piece, transB=1) for piece in flat]
        last = t.emit.integers(2)
        product = t.emit.one("Concat", *(t.emit.one("Unsqueeze", p, last) for p in products), axis=2)
    return t.reshape(product, (weight.axes[0], weight.axes[1], taps), weight.axes)


def _grouped_weight_gradient(t: Trace, grad: str, x: Value, weight: Value, window: ConvWindow, groups: int) -> str:
    """Return the gradient of a grouped convolution's weight: one batched product per tap, one batch per group."""
    outside = ((ConstantFactor(window.outside[0]),), (ConstantFactor(window.outside[1]),))
    many: Axis = (*x.axes[0], *outside[0], *outside[1])
    count: Axis = (ConstantFactor(groups),)
    inside, written = weight.axes[1], split([weight.axes[0]], [groups, weight.shape[0] // groups])[1]
    turned = t.emit.one("Transpose", grad, perm=[1, 0, 2, 3])
    rows = t.reshape(turned, (weight.axes[0], x.axes[0], *outside), (count, written, many))
    products = []
    for piece in shifted_taps(t, x, window):
        columns = t.reshape(piece, (x.axes[1], x.axes[0], *outside), (count, inside, many))
        products.append(t.emit.one("MatMul", rows, t.emit.one("Transpose", columns, perm=[0, 2, 1])))
    last = t.emit.integers(3)
    stacked = t.emit.one("Concat", *(t.emit.one("Unsqueeze", product, last) for product in products), axis=3)
    return t.reshape(stacked, (count, written, inside, (ConstantFactor(len(products)),)), weight.axes)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "aten.conv1d.default": conv1d,
    "aten.conv1d.padding": conv1d,
    "aten.conv_transpose1d.default": conv_transpose1d,
    "aten.conv2d.default": conv2d,
    "aten.conv2d.padding": conv2d,
    "aten.conv_transpose2d.input": conv_transpose2d,
}
