"""Priors and channels for notebooks."""

from __future__ import annotations

from priorveil.catalogue import say
from priorveil.channels import Channel
from priorveil.priors import Prior
from priorveil.priors.label_texts import label_names, label_text
from priorveil.words import html
from priorveil.words.notes import reports_text

_MOST_VALUES = 30
_MOST_CELLS = (30, 12)  # values and reports of a channel


def prior_html(prior: Prior) -> str:
    """The first values and their probabilities, with bars."""
    shown = prior.probabilities[:_MOST_VALUES].tolist()
    names = label_names(prior.labels[:_MOST_VALUES])
    rows = [(*name, f"{p:.6g}") for name, p in zip(names, shown, strict=True)]
    heads = (*(prior.names or (say("valueHead"),)), say("probabilityHead"))
    hidden = len(prior) - len(shown)
    return html.sheet(
        say("priorTitleAssumed" if prior.assumed else "priorTitle", values=prior.domain.size_text()),
        html.table(heads, rows, [len(heads) - 1], shown),
        html.notes([say("andMore", count=f"{hidden:,}")] if hidden else []),
    )


def channel_html(channel: Channel) -> str:
    """The probability of each report, given the value: the first ones of both."""
    rows, columns = (min(shape, most) for shape, most in zip(channel.shape, _MOST_CELLS, strict=True))
    heads = (say("valueHead"), *map(label_text, channel.outputs[:columns]))
    body = [
        (label_text(value), *(f"{p:.4g}" for p in law[:columns]))
        for value, law in zip(channel.inputs[:rows], channel.matrix, strict=False)
    ]
    is_part = (rows, columns) != channel.shape
    values = say("countOfOneValue" if rows == 1 else "countOfValues", count=rows)
    note = say("firstOfChannel", values=values, reports=reports_text(columns))
    return html.sheet(
        say("channelTitle", channel=repr(channel)),
        html.table(heads, body, range(1, len(heads))),
        html.notes([note] if is_part else []),
    )
