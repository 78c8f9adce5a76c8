"""The two-layer character LSTM for Shakespeare: 80 characters in, the next one out.

Paper: FedMAP, "One Training Fits All: Addressing Model-Heterogeneity Federated Learning via Architecture Probing",
section 5, which trains a two-layer LSTM after Reddi et al., "Adaptive Federated Optimization", ICLR 2021. Sizes are
those of McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017
(embedding 8, two layers of 256), on the 80 characters and windows of 80 of LEAF (Caldas et al., 2018).

The layers are two `nn.LSTM` of one layer rather than one of two: the function is the same, but each is then a block
that can be frozen alone, and each may have a width of its own, which `nn.LSTM` does not allow within itself.

Initial values are torch's own; the papers give none. 819,920 parameters with an alphabet of 80 (torch keeps two bias
vectors per layer).
"""

from torch import Tensor, nn

__all__ = ["CharLSTM", "char_lstm"]


class CharLSTM(nn.Module):
    """Embedding, two LSTM layers, and a head that reads the last step."""

    def __init__(
        self, classes: int, alphabet: int, *, embedding: int = 8, hidden: tuple[int, int] = (256, 256)
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(alphabet, embedding)
        self.lstm1 = nn.LSTM(embedding, hidden[0], batch_first=True)
        self.lstm2 = nn.LSTM(hidden[0], hidden[1], batch_first=True)
        self.head = nn.Linear(hidden[1], classes)

    def forward(self, characters: Tensor) -> Tensor:
        """Map N x T indices of characters to N x classes scores of the next character."""
        steps, _ = self.lstm1(self.embedding(characters))
        steps, _ = self.lstm2(steps)
        scores: Tensor = self.head(steps[:, -1])
        return scores


def char_lstm(classes: int, in_channels: int) -> nn.Module:
    """FedMAP's network for Shakespeare; `in_channels` is the size of the alphabet."""
    return CharLSTM(classes, in_channels)
