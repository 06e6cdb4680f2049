"""k-centre greedy (farthest first) over a large pool, with the picks of the plain loop, row for row.

Sener & Savarese, "Active Learning for Convolutional Neural Networks: A Core-Set Approach", 2018, algorithm 1.

The quantity that decides is `D(i, c)` = the float64 sum of squared differences of rows i and c, rounded to float32.
Each pick is the row with the largest `min_c D(i, c)` over the centres so far, the lowest row among equals. Rounding
makes ties that are ties in exact arithmetic stay ties in whatever order the 64-bit sum is taken.

The plain loop reads the pool once per pick. Here a float32 product with an error bound gives every row an upper bound
of its quantity, and only a short list of the rows with the largest bounds (`hot`) is kept exact, pick by pick. A pick
is certain while the best hot row beats the bound of every other row; when it does not, one product with all the
centres picked meanwhile refreshes the bounds, and a new list is made.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mqnet.numerics.products import require_finite, require_matrix, row_chunks, row_products

_FIRST_HOT_ROWS = 2_048
_MOST_HOT_ENTRIES = 8_000_000  # 32 MB of float32
_TAKEN = -1.0


def k_centre_greedy(pool: Tensor, first_centres: Tensor, k: int) -> Tensor:
    """Rows of `pool` [N, d] in the order k-centre greedy picks them: int64 [min(k, N)], distinct.

    `first_centres` [M, d] are centres from the start; with M = 0 every row is infinitely far away, so row 0 comes
    first. A shorter query is a prefix of a longer one. Entries up to 1e15 in size; ValueError names a row that is not
    finite.
    """
    require_matrix("pool", pool)
    require_matrix("first_centres", first_centres, pool.shape[1])
    if k < 0:
        raise ValueError(f"k must not be negative; got {k}")
    n_picks = min(k, pool.shape[0])
    if n_picks == 0:
        return torch.empty(0, dtype=torch.int64)
    search = _Search(pool, first_centres, n_picks)
    return torch.tensor([search.pick() for _ in range(n_picks)], dtype=torch.int64)


class _Search:
    """Upper bounds of all rows, and the hot rows with their exact quantities."""

    def __init__(self, pool: Tensor, first_centres: Tensor, n_picks: int) -> None:
        self.pool = pool
        n, d = pool.shape
        # Distances do not change when everything moves by one vector; products lose fewer digits near the mean.
        self.shift = pool[:: max(1, n // 10_000)].double().mean(0)
        self.centres = torch.empty(len(first_centres) + n_picks, d, dtype=torch.float64)
        self.centres[: len(first_centres)] = first_centres.double()
        self.n_centres = len(first_centres)
        self.n_synced = 0
        self.lengths = torch.empty(n)
        self.spreads = torch.empty(n)
        for rows in row_chunks(n, d):
            x = pool[rows].double()
            self.lengths[rows] = torch.linalg.vector_norm(x, dim=1)
            self.spreads[rows] = (x - self.shift).square().sum(1)
        require_finite("the squared length", self.lengths.square())
        require_finite("the centre", self.centres[: self.n_centres].float())
        self.bounds = torch.full((n,), torch.inf)
        self.n_exact = torch.zeros(n, dtype=torch.int32)  # how many centres the bound of this row holds exactly
        self.n_hot = _FIRST_HOT_ROWS
        self.hot = torch.empty(0, dtype=torch.int64)
        if self.n_centres:
            self._sync()
            self._heat()

    def pick(self) -> int:
        """The next centre."""
        if self.n_centres == 0:
            row = 0
            self._add(row)
            self._sync()
            self._heat()
            return row
        while True:
            best = self.values.max()
            place = int((self.values == best).nonzero()[0])
            row = int(self.hot[place])
            if (float(best), -row) > self.rest:
                break
            stalled = self.n_synced == self.n_centres
            if stalled or self.n_centres - self.n_synced < 8:
                self.n_hot *= 2
            self._sync()
            self._heat()
        self._add(row)
        self.values[place] = _TAKEN
        self._update_hot()
        return row

    def _add(self, row: int) -> None:
        self.centres[self.n_centres] = self.pool[row].double()
        self.n_centres += 1
        self.bounds[row] = _TAKEN

    def _sync(self) -> None:
        """Lower the bounds of all rows to those of the centres added since the last time."""
        if len(self.hot):
            self.bounds[self.hot] = self.values
            self.n_exact[self.hot] = self.n_centres
        new = self.centres[self.n_synced : self.n_centres] - self.shift
        self.n_synced = self.n_centres
        if not len(new):
            return
        columns, offsets = self._screen(new)
        reach = float(torch.linalg.vector_norm(new, dim=1).max())
        for rows in row_chunks(len(self.pool), max(len(new), self.pool.shape[1])):
            closeness = row_products(self.pool[rows].float(), columns, offsets).amax(1)
            upper = self.spreads[rows] - 2.0 * closeness + self._error(self.lengths[rows], self.spreads[rows], reach)
            torch.minimum(self.bounds[rows], upper.clamp_min_(0.0), out=self.bounds[rows])

    def _screen(self, centres: Tensor) -> tuple[Tensor, Tensor]:
        """Columns c and offsets o with |x - centre|^2 = spread(x) - 2 (x.c + o), in float32."""
        return centres.float(), -(centres @ self.shift + 0.5 * centres.square().sum(1)).float()

    def _error(self, lengths: Tensor, spreads: Tensor, reach: float) -> Tensor:
        """Bound of the rounding error of a screened squared distance, for centres at most `reach` from the shift.

        A float32 inner product of d terms errs by at most (d + 1) 2^-24 |x| |c|; doubled for the factor 2, and
        doubled again for the offset, the spread and the sums.
        """
        unit = 4.0 * (self.pool.shape[1] + 8) * 2.0**-24
        return unit * ((lengths + float(self.shift.norm()) + reach) * reach + spreads)

    def _heat(self) -> None:
        """Make the rows with the largest bounds hot: exact values, a float32 copy, and the best of the rest."""
        n, d = self.pool.shape
        size = min(n, self.n_hot, max(1, _MOST_HOT_ENTRIES // d))
        if size < n:
            last = torch.topk(self.bounds, size, sorted=False).values.min()
            above = (self.bounds > last).nonzero().squeeze(1)
            level = (self.bounds == last).nonzero().squeeze(1)
            hot = torch.cat([above, level[: size - len(above)]]).sort().values
            outside = self.bounds.clone()
            outside[hot] = -torch.inf
            rest = outside.max()
            self.rest = (float(rest), -int((outside == rest).nonzero()[0]))
        else:
            hot = torch.arange(n)
            self.rest = (-torch.inf, 0)
        self.hot = hot
        self.hot_rows = self.pool[hot].float()
        self.values = self.bounds[hot]
        live = self.values != _TAKEN
        seen = self.n_exact[hot]
        for start in seen[live].unique().tolist():
            if start < self.n_centres:
                self._make_exact((live & (seen == start)).nonzero().squeeze(1), int(start))

    def _make_exact(self, places: Tensor, start: int) -> None:
        """Exact values of hot rows whose value holds exactly for the first `start` centres (0: it is only a bound)."""
        centres = self.centres[start : self.n_centres] - self.shift
        squares = centres.square().sum(1)
        for span in row_chunks(len(places), max(len(centres), self.pool.shape[1])):
            rows = self.hot[places[span]]
            x = self.pool[rows].double() - self.shift
            squared = x.square().sum(1, keepdim=True) + squares - 2.0 * (x @ centres.T)
            slack = 16.0 * (x.shape[1] + 8) * 2.0**-53 * (x.square().sum(1) + squares.max())
            nearest = squared.min(1)
            value = self._differences(rows, start + nearest.indices)
            # Other centres may round to less; after a difference of zero none can.
            close = (squared <= (nearest.values + slack)[:, None]) & (value > 0)[:, None]
            close[torch.arange(len(rows)), nearest.indices] = False
            item, centre = close.nonzero(as_tuple=True)
            value.scatter_reduce_(0, item, self._differences(rows[item], start + centre), "amin")
            self.values[places[span]] = torch.minimum(self.values[places[span]], value) if start else value

    def _differences(self, rows: Tensor, centres: Tensor) -> Tensor:
        """D of pool rows [p] and centres [p], pair by pair: float32 [p]."""
        result = torch.empty(len(rows))
        for span in row_chunks(len(rows), self.pool.shape[1]):
            gap = self.pool[rows[span]].double() - self.centres[centres[span]]
            result[span] = gap.square_().sum(1).float()
        return result

    def _update_hot(self) -> None:
        """Lower the hot values to the newest centre: exactly, where its screened distance says that it may matter."""
        newest = self.centres[self.n_centres - 1 : self.n_centres] - self.shift
        columns, offsets = self._screen(newest)
        lengths, spreads = self.lengths[self.hot], self.spreads[self.hot]
        closeness = torch.mv(self.hot_rows, columns[0]) + offsets
        lower = spreads - 2.0 * closeness - self._error(lengths, spreads, float(newest.norm()))
        near = (lower < self.values).nonzero().squeeze(1)
        if len(near):
            exact = self._differences(self.hot[near], torch.full_like(near, self.n_centres - 1))
            self.values[near] = torch.minimum(self.values[near], exact)
