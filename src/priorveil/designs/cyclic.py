"""Equal inputs: designs that look the same from every input.

Place the inputs on a ring and use every rotation of a few *blocks*. A block has `floor(tau d)` inputs at
`hi`, one in between and the rest at `lo`. Rotations make the information matrix circulant, so its
eigenvalues are the power spectrum of the blocks, and the variance is

    sum_j  m d / ( (hi - lo)^2 sum_blocks |F_j|^2 ),    j = 1 .. d - 1,

with `m` blocks and `F` the Fourier transform of `(r - lo) / (hi - lo)`. The sum of the spectrum is
the same for all blocks: the flatter, the better, and flat is the optimum of
`priorveil.designs.information.uniform_variance`. Exchanges of two inputs of a block make it flat.
"""

from __future__ import annotations

import numpy as np

from priorveil.designs.columns import Array


def cyclic_columns(dimension: int, lo: float, hi: float, *, blocks: int = 8, rounds: int = 4000) -> Array:
    """All rotations of a few blocks (`blocks * d`, d); equal weights make them a channel.

    >>> columns = cyclic_columns(20, 0.5, 2.0, blocks=2)
    >>> columns.shape, bool(np.allclose(columns.mean(0), 1.0))
    ((40, 20), True)
    """
    full = dimension * (1 - lo) / (hi - lo)
    whole = int(full)
    start = np.zeros(dimension)
    start[:whole] = 1.0
    start[whole] = full - whole
    rng = np.random.default_rng(0)
    found = _flattened(rng.permuted(np.tile(start, (blocks, 1)), axis=1), rounds, rng)
    turns = (np.arange(dimension) + np.arange(dimension)[:, None]) % dimension
    return np.asarray(lo + (hi - lo) * found[:, turns].reshape(-1, dimension))


def _flattened(blocks: Array, rounds: int, rng: np.random.Generator) -> Array:
    """Exchange inputs within blocks while the sum of the inverse spectrum falls."""
    m, d = blocks.shape
    waves = np.exp(-2j * np.pi * np.outer(np.arange(d), np.arange(1, d // 2 + 1)) / d)
    twice = np.where(2 * np.arange(1, d // 2 + 1) == d, 1.0, 2.0)
    spectra = blocks @ waves
    power = (np.abs(spectra) ** 2).sum(0)
    least = float((twice / power).sum())
    for turn in range(rounds):
        place = turn % m
        block = blocks[place]
        i, j = rng.integers(d, size=(2, 200))
        moved = spectra[place] + (block[j] - block[i])[:, None] * (waves[i] - waves[j])
        trial = power - np.abs(spectra[place]) ** 2 + np.abs(moved) ** 2
        cost = (twice / np.maximum(trial, 1e-300)).sum(1)
        best = int(np.argmin(cost))
        if cost[best] < least * (1 - 1e-12):
            block[[i[best], j[best]]] = block[[j[best], i[best]]]
            spectra[place], power, least = moved[best], trial[best], float(cost[best])
    return blocks
