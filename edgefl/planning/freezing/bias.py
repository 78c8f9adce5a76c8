"""The bias of PerFedMask (Setayesh et al., ICLR 2023, Eq. 8 and 9): what freezing costs the global model.

Theorem 1 has the term  sum_n (d max_l k_nl - sum_l k_nl),  where k_n is device n's share in the average of each
parameter. The paper has equal devices, k_nl = m_nl / sum_n' m_n'l. We average by samples. With weights p_n that add up
to 1 and the objective F = sum_n p_n f_n, a round moves parameter l by the average over the devices that train it,

    k_nl = p_n m_nl / S_l,      S_l = sum_n p_n m_nl   (the share of all samples that trains l),

and nothing else in the proof of Theorem 1 changes. Two facts make it simple:

    sum_n k_nl = 1 for every parameter that some device trains, so the second part adds up to d;
    max_l k_nl = p_n / (the least S_l among what n trains).

    bias = d * (sum_n p_n / min over what n trains of S_l  -  1)

With equal weights p_n / S_l is one over a count, as in the paper. A device that trains nothing has k_n = 0 and adds
nothing. The lower bounds rest on one more fact: S_l <= 1, so each term is at least p_n. The devices that train the
least trained layer j pay p_n / S_j each, 1 in total; every other device pays p_n or more. Hence bias >= d * (1 - S_j):
freezing is free only if every device trains everything.
"""

import numpy as np
import numpy.typing as npt

__all__ = ["Flags", "Reals", "bias_of", "coverage_of"]

Flags = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]


def coverage_of(trained: Flags, weights: Reals) -> Reals:
    """Return the share of all samples that trains each block: S in the formula. Each row of `trained` is a device."""
    return weights @ trained


def bias_of(trained: Flags, weights: Reals) -> float:
    """Return the bias in units of d, for weights that add up to 1; infinite if no device trains some block."""
    coverage = coverage_of(trained, weights)
    if not np.all(trained.any(axis=0)):
        return float("inf")
    least = np.where(trained, coverage, np.inf).min(axis=1, initial=np.inf)
    return max(0.0, float(np.sum(weights / least)) - 1.0)
