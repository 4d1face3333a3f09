"""A known device beside the best plans: at the same LIP level, at its own two LIP levels, and at the same LDP level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy.typing as npt

from priorveil.catalogue import say
from priorveil.channels import Channel
from priorveil.designs import design
from priorveil.formatting import readable_number
from priorveil.frames import Library, to_frame
from priorveil.notions import LipSides
from priorveil.plans import Plan
from priorveil.priors import Budget, Prior
from priorveil.queries import Query, Sum
from priorveil.studies.trade_offs import same_ldp_plan
from priorveil.words import html
from priorveil.words.text_tables import text_lines

_NOTICEABLE = 0.005  # a smaller part of the error that is saved is called nothing
_LARGE = 30  # a level beyond which nothing is protected
_HIGHER = 1.005  # an LDP level that is larger by this factor is called higher
_DEVICE, _SAME_LIP, _UPWARDS, _SIDES, _SAME_LDP = (
    "this device", "the same LIP", "the same LIP upwards", "both LIP sides", "the same LDP",
)  # fmt: skip
_TITLES = {
    _DEVICE: "thisDevice",
    _SAME_LIP: "bestAtSameLip",
    _UPWARDS: "bestAtSameUpwards",
    _SIDES: "bestAtSameSides",
    _SAME_LDP: "bestAtSameLdp",
}


@dataclass(frozen=True)
class DeviceRow(LipSides):
    """A device, or the best plan that promises the same: what is `equal`, the levels, and the error per person.

    `saved` is the part of the device's error that the plan does without; nan for the device.
    """

    equal: str
    lip_lower: float
    lip_upper: float
    ldp: float
    error: float
    saved: float

    @property
    def saves(self) -> bool:
        """Whether the plan saves anything worth a word."""
        return self.saved > _NOTICEABLE


@dataclass(frozen=True, eq=False)
class DeviceComparison:
    """A known device beside the best plans. `plans` has them all by what is equal, the device's own first.

    At the same LIP level is, for a device without a finite one downwards, at the same level upwards.
    """

    plans: Mapping[str, Plan]

    @cached_property
    def rows(self) -> tuple[DeviceRow, ...]:
        """The levels and errors, a row for each plan."""
        own = self.plans[_DEVICE].expected_mse
        return tuple(
            DeviceRow(
                equal=equal,
                lip_lower=plan.certificate.lip_lower,
                lip_upper=plan.certificate.lip_upper,
                ldp=plan.certificate.ldp,
                error=plan.expected_mse,
                saved=math.nan if equal == _DEVICE else 1 - plan.expected_mse / own,
            )
            for equal, plan in self.plans.items()
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is true of this device, beside the best plans."""
        row = {each.equal: each for each in self.rows}
        said = [_ldp_sentence(row.get(_SAME_LDP)), _lip_sentence(row)]
        if (sides := row.get(_SIDES)) and sides.saves:
            levels = {"down": f"{row[_DEVICE].lip_lower:.3g}", "up": f"{row[_DEVICE].lip_upper:.3g}"}
            said.append(say("savedAtSameSides", saved=_percent(sides.saved), **levels))
        return tuple(said)

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The heads and the rows of the table, as texts."""
        error = "varianceHead" if self.plans[_DEVICE].query.unbiased else "errorHead"
        heads = ("", say("lipDown"), say("lipUp"), "LDP", say(error), say("savedHead"))
        return heads, [_cells(row) for row in self.rows]

    def record(self) -> list[dict[str, Any]]:
        """The rows for a program."""
        return [vars(row).copy() for row in self.rows]

    def to_frame(self, library: Library | None = None) -> Any:
        """The rows as a data frame of pandas, polars or pyarrow."""
        names = [field.name for field in fields(DeviceRow)]
        return to_frame({name: [getattr(row, name) for row in self.rows] for name in names}, library)

    def __str__(self) -> str:
        return "\n".join([*text_lines(*self.table()), *self.sentences])

    def _repr_html_(self) -> str:
        heads, rows = self.table()
        return html.sheet(
            say("besideBestPlans"), html.table(heads, rows, range(1, len(heads))), html.notes(self.sentences)
        )


def compare_device(
    channel: Channel | npt.ArrayLike,
    prior: Prior | Sequence[float],
    query: Query | None = None,
    seconds: float = 10.0,
) -> DeviceComparison:
    """A known device, as a channel, beside the best plans with the same levels of privacy.

    By default the query is the share of the first value of the channel, from reports alone. With more than two
    values each design takes at most `seconds`.

    >>> from priorveil import Prior, devices
    >>> print(compare_device(devices.crosswise(0.25), Prior([0.2, 0.8])))
                                             LIP down  LIP up    LDP  N × variance  saved
    this device                                 0.956   0.762  1.099          0.91      -
    best at the same LIP level                  0.956   0.956  1.466          0.65   29 %
    best at the same LIP levels down and up     0.956   0.762  1.099          0.91    0 %
    best at the same LDP level                  0.956   0.762  1.099          0.91    0 %
    At the same LDP level nothing is saved: this device is already as good as the best.
    The 29 % saved at the same LIP level are paid for with a higher LDP level: 1.47 instead of 1.1.
    """
    known = Channel.of(channel)
    prior = known.align(Prior.of(prior))
    query = query or Sum([1.0, *[0.0] * (len(prior) - 1)], unbiased=True)
    device = Plan.of(known, prior, query)
    plans = {_DEVICE: device}
    for equal, budget in _budgets(device.certificate.lip_lower, device.certificate.lip_upper).items():
        plans[equal] = design(prior, budget, query, time_limit=seconds)
    if (rival := same_ldp_plan(device, seconds)) is not None:
        plans[_SAME_LDP] = rival
    return DeviceComparison(plans)


def _budgets(lower: float, upper: float) -> dict[str, Budget]:
    """The budgets of LIP that a device of these levels is compared at."""
    if math.isinf(lower):
        return {_UPWARDS: Budget(lower, upper)}
    return {_SAME_LIP: Budget(max(lower, upper)), _SIDES: Budget(lower, upper)}


def _ldp_sentence(same: DeviceRow | None) -> str:
    if same is None:
        return say("noFiniteLdp")
    return say("savedAtSameLdp", saved=_percent(same.saved)) if same.saves else say("nothingSavedAtSameLdp")


def _lip_sentence(row: Mapping[str, DeviceRow]) -> str:
    same = row.get(_SAME_LIP)
    if same is None:
        same = row[_UPWARDS]
        return (
            say("savedAtSameLip", saved=_percent(same.saved))
            if same.saves
            else say("nothingSavedAtSameUpwards")
        )
    if not same.saves:
        return say("nothingSavedAtSameLip")
    own = row[_DEVICE].ldp
    if same.ldp <= _HIGHER * own:
        return say("savedAtSameLip", saved=_percent(same.saved))
    return say("savedAtSameLipForLdp", saved=_percent(same.saved), other=f"{same.ldp:.3g}", own=f"{own:.3g}")


def _cells(row: DeviceRow) -> tuple[str, ...]:
    levels = map(_level, (row.lip_lower, row.lip_upper, row.ldp))
    return (say(_TITLES[row.equal]), *levels, readable_number(row.error, 4), _percent(row.saved))


def _level(level: float) -> str:
    """A level; of very large ones only that, since rounding decides them where a probability is zero."""
    if math.isinf(level):
        return say("infinite")
    return f"> {_LARGE}" if level > _LARGE else f"{level:.3f}"


def _percent(share: float) -> str:
    return (
        "-" if math.isnan(share) else f"{abs(100 * share) if abs(share) < _NOTICEABLE else 100 * share:.0f} %"
    )
