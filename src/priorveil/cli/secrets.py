"""Secrets that commands are given: something behind the value, and the prior that goes with it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil.cli import files as inputs
from priorveil.cli.cells import reading
from priorveil.errors import InvalidSecret

if TYPE_CHECKING:
    from priorveil.priors import Array, Prior, Secret

_SHOWN = 12  # numbers of a mixture, at most, that are shown to be copied

SECRET = click.option(
    "--secret", type=inputs.FILE, help="Protect something behind the value: a file with Pr(value | secret)."
)
MIX = click.option(
    "--mix",
    is_flag=True,
    help="Take the nearest mixture of the secret's rows as the prior (for rounded figures).",
)


def secret(path: Path, known: Prior, normalise: bool) -> Secret:
    """A secret has the form of a channel from secrets to values."""
    from priorveil.priors import Secret

    given = inputs.channel(path, normalise)
    with reading(path):
        order = inputs.places(given.outputs, known.labels, "the prior")
        return Secret(given.matrix[:, order], given.inputs)


def fitted(known: Prior, found: Secret | None, mix: bool, path: Path | None) -> Prior:
    """The prior, which has to be a mixture of the secret's rows; with `mix`, the nearest one if it is none."""
    if found is None or path is None:
        if mix:
            raise click.UsageError("--mix is for the rows of a secret: give --secret or --secret-column")
        return known
    with reading(path):
        try:
            found.require_fits(known)
        except InvalidSecret:
            near = found.nearest(known)
            apart = float(abs(near.probabilities - known.probabilities).sum() / 2)
            if not mix:
                raise ValueError(_contradiction(near.probabilities, apart)) from None
            click.echo(f"the prior is now the nearest mixture of the rows, {apart:.3g} away", err=True)
            return near
    return known


def _contradiction(near: Array, apart: float) -> str:
    """What is wrong, and the ways on."""
    wrong = "the prior is no mixture of these rows: Pr(X) and Pr(X | G) contradict each other"
    if len(near) > _SHOWN:
        return (
            f"{wrong}. The nearest mixture is {apart:.3g} away (total variation): --mix takes it as the prior"
        )
    return (
        f"{wrong}. The nearest mixture is {', '.join(copied(near))}, {apart:.3g} away (total variation): if the "
        "figures are rounded, make these the prior, or let --mix do so; else correct them"
    )


def copied(shares: Array) -> list[str]:
    """Shares as numbers to be copied: short, and they add up to one.

    >>> import numpy as np
    >>> copied(np.array([1 / 3, 1 / 3, 1 / 3]))
    ['0.333333333334', '0.333333333333', '0.333333333333']
    """
    short = [Decimal(f"{share:.12f}") for share in shares]
    short[int(shares.argmax())] += 1 - sum(short)
    return [f"{share.normalize():f}" for share in short]
