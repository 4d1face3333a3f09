"""What one transaction is to store, by the keys of its reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from priorveil.curator.keys import Keys, Mask, as_keys
from priorveil.curator.store import Group

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """The reports of some groups by their keys, each key once: in which group they are, and where.

    In order: then no writer waits for another that waits for it, and neighbours in the index come together.
    """

    keys: Keys
    group: Places
    place: Places

    def only(self, chosen: Mask) -> Batch:
        """Some of the reports."""
        return self if chosen.all() else Batch(self.keys[chosen], self.group[chosen], self.place[chosen])

    def places(self, group: int) -> Places:
        """Where the reports of a group are in it."""
        found: Places = self.place[self.group == group]
        return found


def gathered(groups: Sequence[Group]) -> Batch:
    """All reports of some groups. Of those with the same id in one campaign, the first."""
    parts = [as_keys(group.ids, group.campaign) for group in groups]
    keys = np.concatenate(parts)
    sizes = [len(part) for part in parts]
    group, place = np.repeat(np.arange(len(parts)), sizes), np.concatenate([np.arange(n) for n in sizes])
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    batch = Batch(keys[order], group[order], place[order])
    first = np.ones(len(keys), dtype=bool)
    first[1:] = (batch.keys[1:] != batch.keys[:-1]).any(axis=1)
    return batch.only(first)
