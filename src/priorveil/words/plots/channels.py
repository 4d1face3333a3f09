"""The pictures of priors and channels."""

from __future__ import annotations

from priorveil.channels import Channel
from priorveil.priors import Prior
from priorveil.priors.label_texts import label_names, label_text
from priorveil.showing import Figure
from priorveil.words.plots.lifts import lift_map, probability_map
from priorveil.words.plots.statistics import Layout, shares_figure


def prior_figure(prior: Prior) -> Figure:
    """A bar for the share of each value, or a map of the shares of two attributes."""
    layout = Layout(prior.names or (), label_names(prior.labels), None, counts_people=True)
    return shares_figure(prior.probabilities, layout)


def channel_figure(channel: Channel, prior: Prior | None) -> Figure:
    """A map of the lift of each value at each report; without a prior, of the probabilities of the reports."""
    possible = channel.drop_unused()
    values, reports = (list(map(label_text, labels)) for labels in (possible.inputs, possible.outputs))
    if prior is None:
        return probability_map(possible.matrix, values, reports)
    P = possible.align(prior).probabilities
    return lift_map(possible.lift(prior), P, values, reports)
