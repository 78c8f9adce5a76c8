"""A model that is not in the zoo: an example of a user's own model, also used by tests and benchmarks.

edgefl export --model examples.outside_model:Outsider --input 3,16,16 --out exported/outsider
"""

import torch  # noqa: TID251  a user's model is torch's
from torch import nn  # noqa: TID251

__all__ = ["Outsider"]


class Outsider(nn.Module):
    """Branches, a concatenation, depthwise and dilated convolutions, overlapping pools, two kinds of norm."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.right = nn.Sequential(nn.Conv2d(3, 6, 3, padding=2, dilation=2), nn.BatchNorm2d(6), nn.ReLU())
        self.mix = nn.Conv2d(14, 10, 1, bias=False)
        self.depth = nn.Conv2d(10, 10, 3, stride=2, padding=1, groups=10)
        self.hidden = nn.Linear(10 * 16, 12)
        self.head = nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give the scores of five classes for images of 3 x 16 x 16."""
        both = torch.cat([self.left(x), self.right(x)], 1)
        pooled = nn.functional.max_pool2d(both, 3, 2, 1)
        mixed = self.mix(pooled)
        scores: torch.Tensor = self.head(torch.tanh(self.hidden(self.depth(mixed).flatten(1))))
        return scores
