"""FedSpa's first masks: how many weights of each tensor a sparse model holds, and which.

FedSpa ("Achieving Personalized Federated Learning with Sparse Local Models"), appendix A, takes the Erdos-Renyi kernel
of Evci et al., "Rigging the Lottery", ICML 2020: the density of a tensor is proportional to the sum of its shape over
the product of its shape, so that small tensors stay denser. A tensor that would get more than all of its weights
becomes dense, and the rest is solved again. (The formula in the paper's text lost its product signs.)

The weights of layers and head become sparse. Norms and biases are held whole; the density counts them, as the 50.0 % of
the bytes in the paper's table 1 do. The same seed gives the same mask on every device and on the coordinator.
"""

import math

from edgefl.errors import MaskError
from edgefl.local_rules.ranking import lowest
from edgefl.masks import BoolArray, Mask
from edgefl.model_graph import TensorRole, cost_of
from edgefl.noise import bits, derive

__all__ = ["erk_counts", "erk_densities", "erk_mask", "maskable_tensors"]


def maskable_tensors(mask: Mask) -> tuple[str, ...]:
    """Return the tensors whose single weights may be left out: matrices and kernels of layers and head."""
    return tuple(
        tensor.name
        for tensor in mask.graph.tensors
        if tensor.role in (TensorRole.WEIGHT, TensorRole.HEAD) and len(tensor.shape) > 1
    )


def erk_densities(mask: Mask, density: float) -> dict[str, float]:
    """Return the density of each maskable tensor, so that the submodel holds a share `density` of its parameters."""
    shapes = {name: mask.shapes[name] for name in maskable_tensors(mask)}
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    parameters = cost_of(mask.graph, mask.widths).parameters
    left = density * parameters - (parameters - sum(sizes.values()))
    if not 0 < density <= 1 or left <= 0:
        least = 1 - sum(sizes.values()) / parameters
        raise MaskError(
            f"a density of {density} is impossible",
            fix=f"Give at most 1 and more than {least:.3g}: norms and biases are always held.",
        )
    sparse = dict(shapes)
    while sparse:
        scale = left / sum(sum(shape) for shape in sparse.values())
        full = [name for name, shape in sparse.items() if scale * sum(shape) >= sizes[name]]
        if not full:
            break
        for name in full:
            left -= sizes[name]
            del sparse[name]
    return {name: scale * sum(sparse[name]) / sizes[name] if name in sparse else 1.0 for name in shapes}


def erk_counts(mask: Mask, density: float) -> dict[str, int]:
    """Return how many weights of each maskable tensor are held, at least one of each.

    Shares are rounded to the nearest; if that gives a few too many, the tensors that hold most give them up.
    """
    densities = erk_densities(mask, density)
    sizes = {name: math.prod(mask.shapes[name]) for name in densities}
    counts = {name: max(1, round(share * sizes[name])) for name, share in densities.items()}
    parameters = cost_of(mask.graph, mask.widths).parameters
    others = parameters - sum(sizes.values())
    for _ in range(others + sum(counts.values()) - math.floor(density * parameters)):
        most = max(counts, key=counts.__getitem__)
        counts[most] = max(1, counts[most] - 1)
    return counts


def erk_mask(mask: Mask, density: float, seed: int) -> Mask:
    """Return the mask with random weights held: `erk_counts` of every tensor."""
    held = {name: _random_flags(mask, name, count, seed) for name, count in erk_counts(mask, density).items()}
    return Mask(mask.graph, mask.trained, mask.kept, held)


def _random_flags(mask: Mask, name: str, count: int, seed: int) -> BoolArray:
    words = bits(derive(seed, "erk", name), 0, math.prod(mask.shapes[name]))
    return lowest(words, count).reshape(mask.shapes[name])
