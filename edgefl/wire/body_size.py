"""Size of a body: how many bytes its header and each tensor take."""

from collections.abc import Mapping
from dataclasses import dataclass

from edgefl.wire.envelope import header_bytes, unseal

__all__ = ["WireSize", "measure"]


@dataclass(frozen=True, slots=True)
class WireSize:
    """The size of one body."""

    total_bytes: int
    header_bytes: int
    """Everything that is not tensor data: names, shapes, codecs, digest."""
    tensor_bytes: Mapping[str, int]
    """Data bytes of each tensor. Bitmaps of axes that slices share are counted under "#"."""

    def bits_per_parameter(self, parameters: int) -> float:
        """Return the bits on the wire per parameter, including headers."""
        return 8 * self.total_bytes / parameters


def measure(data: bytes) -> WireSize:
    """Return the sizes in a valid body."""
    sizes: dict[str, int] = {}
    for part, array in unseal(data)[1].items():
        tensor = part.partition("#")[0] or "#"
        sizes[tensor] = sizes.get(tensor, 0) + array.nbytes
    return WireSize(len(data), header_bytes(data), sizes)
