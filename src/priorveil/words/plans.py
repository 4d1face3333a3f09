"""The words of plans and ledgers: the facts that are printed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from priorveil.catalogue import say
from priorveil.certify import Certificate
from priorveil.formatting import level_at_most, level_figure, readable_number, share_at_least
from priorveil.information import gain_share
from priorveil.notions import PairwiseLDP
from priorveil.plans import Plan
from priorveil.plans.composition import REVEALING, JointLeakage
from priorveil.plans.ledger import Ledger
from priorveil.priors import Prior
from priorveil.reading.estimate import Estimate
from priorveil.reading.precision import USUAL_PEOPLE, Precision
from priorveil.reading.precision_notes import promised_precision
from priorveil.words import html
from priorveil.words.levels import LEVEL_HEADS, lip_rows
from priorveil.words.notes import note_text, reports_text

_BEST = 0.999  # the efficiency from which a mechanism is called the best one


def plan_facts(plan: Plan, people: int = USUAL_PEOPLE) -> list[tuple[str, str]]:
    """The most important facts about a plan, as pairs of name and text; the precision is that with so many people."""
    certificate = plan.certificate
    query, values = plan.query.title(plan.reference), plan.domain.size_text()
    facts = [
        (say("factAsked"), say("planAsked", query=query, values=values, budget=budget_text(plan))),
        (say("factMethod"), say("planMethod", method=plan.method, why=plan.why)),
    ]
    if not isinstance(plan.prior, Prior):
        facts.append((say("factHoldsFor"), _holds_for(plan)))
    if certificate.notion not in ("LIP", "LDP"):
        key = "certifiedLevel" if plan.secret is None else "certifiedLevelBehind"
        level = say(key, level=level_figure(certificate.level))
        facts.append((say("factCertified", notion=certificate.notion), level))
    if isinstance(plan.notion, PairwiseLDP) and plan.notion.free_pairs:
        pairs = len(plan.labels) * (len(plan.labels) - 1)
        free = say("freePairs", free=f"{plan.notion.free_pairs:,}", pairs=f"{pairs:,}")
        facts.append((say("factNotProtected"), free))
    worst = not isinstance(plan.prior, Prior)
    return [
        *facts,
        *_level_facts(plan),
        (say("factPrecision"), str(plan.expected_precision(people))),
        (
            say("factExpectedError"),
            say(
                "expectedErrorWorst" if worst else "expectedError",
                error=readable_number(plan.expected_mse),
                unit=plan.query.error_unit,
            ),
        ),
        (say("factNoReport"), _no_report_text(plan)),
        (say("factLowerBound"), _lower_bound_text(plan)),
        (say("factEfficiency"), say("atLeastOfGain", share=share_at_least(plan.efficiency))),
        (say("factIdentifies"), _identifies(plan)),
        (say("factId"), plan.id if plan.query.savable else say("cannotBeSaved")),
    ]


def precision_text(precision: Precision) -> str:
    """What is known about the population and, leaning on the prior, about these people."""
    return note_text(promised_precision(precision))


def _level_facts(plan: Plan) -> list[tuple[str, str]]:
    """The certified levels, LDP first where the prior is only assumed, and a warning if they protect little."""
    certificate = plan.certificate
    sides = {"down": level_figure(certificate.lip_lower), "up": level_figure(certificate.lip_upper)}
    key = "certifiedLip" if plan.secret is None else "certifiedLipBehind"
    lip = say(key, level=level_figure(certificate.lip), **sides)
    ldp_fact = (say("factLdp"), level_figure(certificate.ldp))
    if plan.prior.assumed:
        assumed = (say("factPrior"), _what_is_assumed(plan))
        lip_fact = (say("factCertified", notion="LIP"), say("ifAssumedRight", level=lip))
        facts = [assumed, ldp_fact, lip_fact]
    else:
        facts = [(say("factCertified", notion="LIP"), lip), ldp_fact]
    if min(certificate.lip, plan.budget.smaller) > REVEALING:
        key = "weakForValueOfReport" if plan.secret is None else "weakForSecretOfReport"
        facts.append((say("factWeak"), say(key, budget=plan.budget)))
    return facts


def ledger_levels(ledger: Ledger) -> list[tuple[str, str, str]]:
    """What all reports of a ledger leak together: name, level and meaning, for tables."""
    level = ledger.level
    rows = [*lip_rows(level, ledger.assumed), ("LDP", level.ldp, say("ldpMeaning"))]
    return [(name, level_at_most(number), meaning) for name, number, meaning in rows]


def ledger_facts(ledger: Ledger) -> list[tuple[str, str]]:
    """How many reports were made, and the limit of what they may leak."""
    limit = say("noLimit") if ledger.limit is None else str(ledger.limit)
    return [(say("factReports"), f"{len(ledger.spent):,}"), (say("factLimit"), limit)]


def plan_text(plan: Plan) -> str:
    """The facts, a line for each."""
    facts = plan_facts(plan)
    width = max(len(name) for name, _ in facts) + 2
    return "\n".join(f"{name:<{width}}{text}" for name, text in facts)


def plan_html(plan: Plan) -> str:
    """The facts, for a notebook."""
    return html.sheet(say("planTitle"), html.facts(plan_facts(plan)))


def ledger_title(ledger: Ledger) -> str:
    """A ledger in one line."""
    limit = "" if ledger.limit is None else f", limit: {ledger.limit}"
    levels = levels_text(ledger.level, ledger.assumed)
    return f"Ledger({reports_text(len(ledger.spent))}, {levels}{limit})"


def ledger_html(ledger: Ledger) -> str:
    """The levels and the reports, for a notebook."""
    entries = [(entry.plan[:12], level_at_most(entry.ldp)) for entry in ledger.spent]
    table = html.table((say("factPlan"), "LDP"), entries, [1]) if entries else ""
    levels = html.table(LEVEL_HEADS, ledger_levels(ledger), [1])
    return html.sheet(say("ledgerTitle"), html.facts(ledger_facts(ledger)), levels, table)


def plan_title(plan: Plan) -> str:
    """A plan in one line."""
    asked = f"{plan.query.title(plan.reference)} on {len(plan.labels)} values, {plan.method}"
    levels = levels_text(plan.certificate, plan.prior.assumed)
    error = readable_number(plan.expected_mse, 4)
    return f"Plan({asked}, {levels}, error {error}, efficiency {plan.efficiency:.2%})"


def levels_text(levels: JointLeakage | Certificate, assumed: bool) -> str:
    """The LIP and LDP levels in a few words; LDP first where the prior is only assumed."""
    return say(
        "ldpFirst" if assumed else "lipFirst",
        lip=level_figure(levels.lip, 4),
        ldp=level_figure(levels.ldp, 4),
    )


def budget_text(plan: Plan) -> str:
    """The notion and the budget that a plan was designed for."""
    assumed = plan.prior.assumed and plan.notion.bounds_lifts
    return say("budgetAssumed" if assumed else "budget", notion=plan.certificate.notion, budget=plan.budget)


def reading_title(plans: Sequence[Plan], estimate: Estimate) -> str:
    """What was estimated, by which method, from how many reports, at which budgets."""
    budgets = sorted(map(budget_text, plans))
    first, last = budgets[0], budgets[-1]
    query = plans[0].query.title(plans[0].reference)
    return say(
        "readingTitle",
        query=f"{query[0].upper()}{query[1:]}",
        method=estimate.method,
        reports=reports_text(estimate.reports),
        budget=first if first == last else say("fromTo", first=first, last=last),
    )


def is_best(plan: Plan) -> bool:
    """Whether a plan is proven to be as good as the best one, up to rounding."""
    return plan.efficiency > _BEST


def ldp_fact(plan: Plan, rival: Plan) -> tuple[str, str]:
    """How good an LDP mechanism would be in the place of a plan, as a pair of name and text."""
    key = "bestLdpAtEpsilon" if is_best(rival) else "ldpAtEpsilon"
    share = max(0.0, gain_share(rival.expected_mse, plan.lower_bound, plan.no_report))
    error = readable_number(rival.expected_mse)
    return (
        say(key, epsilon=f"{plan.budget.smaller:.4g}"),
        say("ldpError", error=error, share=share_at_least(share), method=rival.method),
    )


def _holds_for(plan: Plan) -> str:
    """The set of priors that a plan holds for; of a sample, whom it protects and how often that fails."""
    sample = plan.prior.sample
    if sample is None:
        return say("everyPriorOf", set=plan.prior)
    values = {"level": f"{plan.certificate.lip:.6g}", "people": f"{sample.people:,}"}
    return say("populationOfSample", odds=f"{sample.odds:,}", **values)


def _what_is_assumed(plan: Plan) -> str:
    """That the prior is assumed; and that all values are taken to be equally common, if they are."""
    return (
        say("priorAssumedFlat", everything=plan.domain.everything()) if plan.is_flat else say("priorAssumed")
    )


def _lower_bound_text(plan: Plan) -> str:
    bound, resolution = readable_number(plan.lower_bound), plan.domain.resolution
    if resolution:
        return say("noBetterPlanWithPoints", resolution=resolution, bound=bound)
    return say("noBetterPlan", bound=bound)


def _no_report_text(plan: Plan) -> str:
    return say("noUnbiasedWithoutReports") if math.isinf(plan.no_report) else readable_number(plan.no_report)


def _identifies(plan: Plan) -> str:
    if plan.precision.determined is None:
        return say("identifiesUnchecked")
    if not plan.precision.determined:
        return say("identifiesNot")
    keys = {  # by whether reports alone determine the distribution, and whether the query is unbiased
        (True, True): "identifiesYes",
        (True, False): "identifiesByUnbiased",
        (False, True): "identifiesStatistics",
        (False, False): "identifiesStatisticsByUnbiased",
    }
    text = say(keys[plan.identifiable, plan.query.unbiased])
    return say("identifiesAssumed", identifies=text) if plan.reader.identifies_by_assumption else text
