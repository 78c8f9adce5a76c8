"""Linear programs with or without integers, solved by HiGHS. The only module that imports scipy.

It is imported when a planner that needs it runs, never by a device. HiGHS is stopped by a number of nodes and not by a
clock, so that the same problem has the same answer on every machine.
"""

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgefl.errors import MissingDependencyError
from edgefl.planning.freezing.bias import Reals

__all__ = ["Solution", "LinearProgram"]

_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What the solver found."""

    values: Reals | None
    """The best point; None if there is none, or none was found in time."""
    bound: float
    """No point has a value below this."""
    solved: bool
    """Whether the point is proven to be the best."""
    infeasible: bool


@dataclass(slots=True)
class LinearProgram:
    """A linear program, built piece by piece: minimise cost @ x within bounds and rows."""

    cost: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    _entries: list[tuple[Any, Any, Any]] = field(default_factory=list)
    _row_low: list[float] = field(default_factory=list)
    _row_high: list[float] = field(default_factory=list)

    def variables(
        self, count: int, *, cost: Any = 0.0, low: Any = 0.0, high: Any = np.inf, whole: bool = False
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Add variables, and return their indices."""
        start = len(self.cost)
        self.cost += np.broadcast_to(np.asarray(cost, np.float64), count).tolist()
        self.low += np.broadcast_to(np.asarray(low, np.float64), count).tolist()
        self.high += np.broadcast_to(np.asarray(high, np.float64), count).tolist()
        self.whole += [int(whole)] * count
        return np.arange(start, start + count)

    def row(self, *terms: tuple[Any, Any], low: float = -np.inf, high: float = np.inf) -> None:
        """Add the constraint low <= sum of factor * variable <= high, for (variables, factors) in `terms`."""
        number = len(self._row_low)
        for variables, factors in terms:
            columns = np.atleast_1d(np.asarray(variables))
            self._entries.append((number, columns, np.broadcast_to(np.asarray(factors, np.float64), columns.shape)))
        self._row_low.append(low)
        self._row_high.append(high)

    def solve(self, *, nodes: int | None = None, gap: float = 0.0) -> Solution:
        """Minimise; with integer variables, visit at most this many nodes, or stop at a relative gap."""
        try:
            from scipy.optimize import Bounds, LinearConstraint, milp
            from scipy.sparse import csr_array
        except ImportError:
            raise MissingDependencyError("scipy", action="Planning frozen layers", extra="coordinator") from None
        rows = np.concatenate([np.full(columns.size, number) for number, columns, _ in self._entries])
        columns = np.concatenate([columns for _, columns, _ in self._entries])
        factors = np.concatenate([factors for _, _, factors in self._entries])
        shape = (len(self._row_low), len(self.cost))
        options: dict[str, Any] = {"mip_rel_gap": gap} | ({} if nodes is None else {"node_limit": nodes})
        matrix = csr_array((factors, (rows, columns)), shape)
        with _quiet() if any(self.whole) else contextlib.nullcontext():
            result = milp(
                np.array(self.cost),
                integrality=np.array(self.whole),
                bounds=Bounds(np.array(self.low), np.array(self.high)),
                constraints=LinearConstraint(matrix, self._row_low, self._row_high),
                options=options,
            )
        bound = result.mip_dual_bound if any(self.whole) else result.fun
        if bound is None or not np.isfinite(bound):
            bound = -np.inf if result.status != 0 else float(result.fun)
        return Solution(result.x, float(bound), result.status == 0, result.status == 2)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Redirect stdout to stderr: HiGHS prints a line when it polishes an integer solution, and stdout is for data."""
    with _ONE_AT_A_TIME:
        sys.stdout.flush()
        try:
            kept = os.dup(1)
            os.dup2(2, 1)
        except OSError:  # there is no stdout or no stderr
            yield
            return
        try:
            yield
        finally:
            ctypes.CDLL(None).fflush(None)  # the solver prints through C's own buffer
            os.dup2(kept, 1)
            os.close(kept)
