"""Which functions show the objects of each class; `showing` looks here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from priorveil.certify import Certificate
from priorveil.channels import Channel
from priorveil.notes import Note
from priorveil.notions import Leakage
from priorveil.plans import Plan
from priorveil.plans.ledger import Ledger
from priorveil.priors import Prior
from priorveil.reading.averages import Averages
from priorveil.reading.estimate import Estimate
from priorveil.reading.precision import Precision
from priorveil.reading.statistics import Statistic
from priorveil.reading.tally import Tally
from priorveil.statistics.comparing import Comparison, ComparisonTable
from priorveil.statistics.dice import DiceMenu, DicePair
from priorveil.statistics.independence import Independence
from priorveil.statistics.outcome_fit import OutcomeFit
from priorveil.statistics.planning import PowerAnalysis
from priorveil.statistics.regression_estimates import MarginalEffects, Predictions
from priorveil.statistics.regression_fit import RegressionFit
from priorveil.statistics.samples import SampleEstimate
from priorveil.statistics.significance import ChiSquareTest
from priorveil.words import (
    comparisons,
    dice,
    estimates,
    levels,
    planning,
    plans,
    priors,
    regressions,
)
from priorveil.words.notes import note_text
from priorveil.words.plots import channels as channel_plots
from priorveil.words.plots import estimates as estimate_plots
from priorveil.words.plots import plans as plan_plots

SHOWN: Mapping[type, Mapping[str, Callable[..., Any]]] = {
    Averages: {
        "text": estimates.averages_text,
        "html": estimates.averages_html,
        "figure": estimate_plots.averages_figure,
    },
    Certificate: {"html": levels.certificate_html},
    Channel: {"html": priors.channel_html, "figure": channel_plots.channel_figure},
    DiceMenu: {"text": dice.menu_text, "html": dice.menu_html},
    DicePair: {"text": dice.pair_text, "html": dice.pair_html, "page": dice.sheet_page},
    ChiSquareTest: {"text": regressions.hypothesis_text, "html": regressions.hypothesis_html},
    Estimate: {
        "text": estimates.estimate_text,
        "line": estimates.estimate_summary,
        "html": estimates.estimate_html,
        "figure": estimate_plots.estimate_figure,
    },
    Leakage: {"text": levels.leakage_text, "html": levels.leakage_html},
    Comparison: {"text": comparisons.comparison_text, "html": comparisons.comparison_html},
    ComparisonTable: {"text": comparisons.table_text, "html": comparisons.table_html},
    Independence: {"text": comparisons.independence_summary, "html": comparisons.independence_html},
    Ledger: {"line": plans.ledger_title, "html": plans.ledger_html},
    MarginalEffects: {"text": regressions.effects_text, "html": regressions.effects_html},
    Note: {"text": note_text},
    OutcomeFit: {
        "text": regressions.outcome_fit_text,
        "line": regressions.outcome_fit_line,
        "html": regressions.outcome_fit_html,
    },
    Plan: {
        "text": plans.plan_text,
        "line": plans.plan_title,
        "html": plans.plan_html,
        "figure": plan_plots.plan_figure,
    },
    PowerAnalysis: {"text": planning.power_text, "html": planning.power_html},
    Precision: {"text": plans.precision_text},
    Predictions: {"text": regressions.predictions_text, "html": regressions.predictions_html},
    Prior: {"html": priors.prior_html, "figure": channel_plots.prior_figure},
    RegressionFit: {
        "text": regressions.fit_text,
        "line": regressions.fit_line,
        "html": regressions.fit_html,
    },
    SampleEstimate: {
        "text": estimates.sample_text,
        "line": estimates.sample_summary,
        "html": estimates.sample_html,
    },
    Statistic: {"text": estimates.statistic_text, "html": estimates.statistic_html},
    Tally: {"html": estimates.tally_html},
}
