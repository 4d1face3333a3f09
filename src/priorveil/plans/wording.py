"""The words of plans: the facts that are printed, and remarks on how to read their reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from priorveil.errors import plural
from priorveil.formatting import factor_at_most, level_at_most, readable_number, share_at_least
from priorveil.information import gain_share
from priorveil.notions import LDP_MEANING, ONLY_IF_RIGHT, PairwiseLDP
from priorveil.priors import Prior

if TYPE_CHECKING:
    from priorveil.certify import Certificate
    from priorveil.plans.composition import JointLeakage
    from priorveil.plans.ledger import Ledger
    from priorveil.plans.plan import Plan
    from priorveil.reading.estimate import Estimate
    from priorveil.reading.tally_reading import Reading

_REVEALING = 3.0  # the level above which a belief of 50 % can become one of more than 97 %
_BEST = 0.999  # the efficiency from which a mechanism is called the best one
_IDENTIFIES = {  # by whether reports alone determine the distribution, and whether the query is unbiased
    (True, True): "yes: reports alone determine it, even if the prior is wrong",
    (True, False): "yes, by method unbiased; the usual estimate leans on the prior",
    (False, True): "no, only the statistics asked for",
    (False, False): "no, only the statistics asked for, by method unbiased; mmse leans on the prior",
}


def weak_protection(level: float, name: str, sent: str, target: str) -> str | None:
    """A warning if what is sent nearly reveals a likely value at this level, which has a name; otherwise None.

    >>> weak_protection(20.0, "LIP 20", "a submission", "answer")
    'at LIP 20 a submission nearly reveals a likely answer; epsilon 1 is a good start'
    """
    if level <= _REVEALING:
        return None
    return f"at {name} {sent} nearly reveals a likely {target}; epsilon 1 is a good start"


def plan_facts(plan: Plan) -> list[tuple[str, str]]:
    """The most important facts about a plan, as pairs of name and text."""
    certificate = plan.certificate
    behind = "" if plan.secret is None else ", for the secret behind the value"
    resolution = plan.domain.resolution
    there = f" with these {resolution}" if resolution else ""
    facts = [
        ("asked", f"{plan.query.title(plan.reference)} of {plan.domain.size_text()}, {budget_text(plan)}"),
        ("method", f"{plan.method}: {plan.why}"),
    ]
    if not isinstance(plan.prior, Prior):
        facts.append(("holds for", f"every prior of {plan.prior}"))
    if certificate.notion not in ("LIP", "LDP"):
        facts.append((f"{certificate.notion}, certified", f"{certificate.level:.6g}{behind}"))
    if isinstance(plan.notion, PairwiseLDP) and plan.notion.free_pairs:
        pairs = len(plan.labels) * (len(plan.labels) - 1)
        facts.append(("not protected", f"{plan.notion.free_pairs:,} of {pairs:,} ordered pairs of values"))
    sides = f"down {certificate.lip_lower:.6g}, up {certificate.lip_upper:.6g}"
    lip = ("LIP, certified", f"{certificate.lip:.6g} ({sides}){behind}")
    ldp = ("LDP, for any prior", f"{certificate.ldp:.6g}")
    if plan.prior.assumed:
        facts.append(("prior", f"assumed, not known{_what_is_assumed(plan)}"))
        levels = [ldp, (lip[0], f"{lip[1]}, {ONLY_IF_RIGHT}")]
    else:
        levels = [lip, ldp]
    target = "value" if plan.secret is None else "secret"
    warning = weak_protection(min(certificate.lip, plan.budget.smaller), str(plan.budget), "a report", target)
    if warning is not None:
        levels.append(("weak protection", warning))
    lower_bound = readable_number(plan.lower_bound)
    worst = "" if isinstance(plan.prior, Prior) else ", under the worst prior of the set"
    return [
        *facts,
        *levels,
        ("precision", str(plan.precision)),
        ("expected error", f"{readable_number(plan.expected_mse)}, {plan.query.error_unit}{worst}"),
        ("error without reports", _no_report_text(plan)),
        ("proven lower bound", f"no plan{there} has an error below {lower_bound}"),
        ("efficiency", f"at least {share_at_least(plan.efficiency)} of the possible gain"),
        ("identifies the distribution", _identifies(plan)),
        ("id", plan.id if plan.query.savable else "(cannot be saved)"),
    ]


def plan_record(plan: Plan) -> dict[str, str | int | float]:
    """A plan as one row of a table: what was asked, its proven levels, and its error."""
    same = ("lower_bound", "no_report", "efficiency", "method", "id")
    return {
        "query": plan.query.kind,
        "values": len(plan.labels),
        "notion": plan.certificate.notion,
        "budget_lower": plan.budget.lower,
        "budget_upper": plan.budget.upper,
        "assumed_prior": plan.prior.assumed,
        **{name: getattr(plan.certificate, name) for name in ("lip", "lip_lower", "lip_upper", "ldp")},
        "expected_mse": plan.expected_mse,
        **{name: getattr(plan, name) for name in same},
    }


def ledger_levels(ledger: Ledger) -> list[tuple[str, str, str]]:
    """What all reports of a ledger leak together: name, level and meaning, for tables."""
    level = ledger.level
    bound = "" if level.exact else " (an upper bound)"
    rows = [*level.lip_rows(ledger.assumed), ("LDP", level.ldp, LDP_MEANING)]
    return [(name, level_at_most(number), meaning + bound) for name, number, meaning in rows]


def ledger_facts(ledger: Ledger) -> list[tuple[str, str]]:
    """How many reports were made, and the limit of what they may leak."""
    limit = "none" if ledger.limit is None else str(ledger.limit)
    return [("reports", f"{len(ledger.spent):,}"), ("limit", limit)]


def plan_text(plan: Plan) -> str:
    """The facts, a line for each."""
    facts = plan_facts(plan)
    width = max(len(name) for name, _ in facts) + 2
    return "\n".join(f"{name:<{width}}{text}" for name, text in facts)


def plan_title(plan: Plan) -> str:
    """A plan in one line."""
    asked = f"{plan.query.title(plan.reference)} on {len(plan.labels)} values, {plan.method}"
    levels = levels_text(plan.certificate, plan.prior.assumed)
    error = readable_number(plan.expected_mse, 4)
    return f"Plan({asked}, {levels}, error {error}, efficiency {plan.efficiency:.2%})"


def levels_text(levels: JointLeakage | Certificate, assumed: bool) -> str:
    """The LIP and LDP levels in a few words; LDP first where the prior is only assumed."""
    lip, ldp = f"LIP {levels.lip:.4g}", f"LDP {levels.ldp:.4g}"
    return f"{ldp}, {lip} {ONLY_IF_RIGHT}" if assumed else f"{lip}, {ldp}"


def budget_text(plan: Plan) -> str:
    """The notion and the budget that a plan was designed for."""
    under = " under an assumed prior" if plan.prior.assumed and plan.notion.bounds_lifts else ""
    return f"{plan.certificate.notion} at {plan.budget}{under}"


def reading_title(plans: Sequence[Plan], estimate: Estimate) -> str:
    """What was estimated, by which method, from how many reports, at which budgets."""
    budgets = sorted(set(map(budget_text, plans)))
    budget = budgets[0] if len(budgets) == 1 else f"{budgets[0]} to {budgets[-1]}"
    asked = plans[0].query.title(plans[0].reference)
    reports = plural(estimate.reports, "report")
    return f"{asked[0].upper()}{asked[1:]}, {estimate.method} reading of {reports}, {budget}"


def privacy_facts(promise: Iterable[JointLeakage]) -> list[tuple[str, str, str]]:
    """What everything that a person sends reveals at most, in lay words: name, factor, and when it holds.

    The levels are the largest of these; LIP is left out where it says no more than LDP.
    """
    lip, ldp = (max(each) for each in zip(*((level.lip, level.ldp) for level in promise), strict=True))
    odds = _changes("The odds of one answer against another change", ldp, "no matter what is already known")
    probability = _changes(
        "The probability of an answer changes", lip, "if answers are as common as expected"
    )
    return [probability, odds] if lip < ldp else [odds]


def _changes(name: str, level: float, when: str) -> tuple[str, str, str]:
    if math.isinf(level):
        return name, "by any factor", "a report can rule out a value"
    return f"{name} by a factor of at most", factor_at_most(level), when


def is_best(plan: Plan) -> bool:
    """Whether a plan is proven to be as good as the best one, up to rounding."""
    return plan.efficiency > _BEST


def ldp_fact(plan: Plan, rival: Plan) -> tuple[str, str]:
    """How good an LDP mechanism would be in the place of a plan, as a pair of name and text."""
    name = "the best LDP" if is_best(rival) else "LDP"
    share = max(0.0, gain_share(rival.expected_mse, plan.lower_bound, plan.no_report))
    gain = f"{share_at_least(share)} of the possible gain ({rival.method})"
    error = f"expected error {readable_number(rival.expected_mse)}"
    return f"{name} at epsilon {plan.budget.smaller:.4g}", f"{error}, {gain}"


def plan_remarks(plan: Plan, reading: Reading, by_own_prior: bool) -> tuple[str, ...]:
    """What to know about numbers that were counted at the ends of the range, and about a prior that was assumed.

    If reports are read by the plan's own prior and it has a set of them, also which one that is.
    """
    remarks = list(plan.domain.remarks())
    if plan.prior.assumed and plan.notion.bounds_lifts:
        remarks.append(
            f"The prior of the plan is assumed, not known{_what_is_assumed(plan)}. LDP at {plan.certificate.ldp:.6g} "
            f"holds for everybody, LIP at {plan.certificate.lip:.6g} {ONLY_IF_RIGHT}. Design the "
            "next plan with known shares or a public sample, or for LDP."
        )
    if reading.known is not None:
        remarks.append(
            "This estimate leans on a set of priors: reports are read at the one for which the error is largest. Where "
            "another prior of the set is right the estimate is biased, and more reports do not correct that; its "
            "intervals add the largest bias."
        )
    elif by_own_prior and not isinstance(plan.prior, Prior):
        remarks.append(
            "The plan is for a set of priors, and its prior check is that of one of them: if reports contradict it, "
            "another prior of the set may be right."
        )
    return tuple(remarks)


def _what_is_assumed(plan: Plan) -> str:
    """That all values are taken to be equally common, if they are, as the end of a sentence."""
    flat = np.allclose(plan.reference.probabilities, plan.domain.flat_masses())
    return f": all {plan.domain.everything()} are taken to be equally common" if flat else ""


def _no_report_text(plan: Plan) -> str:
    if math.isinf(plan.no_report):
        return "infinite: without reports there is no unbiased estimate"
    return readable_number(plan.no_report)


def _identifies(plan: Plan) -> str:
    if plan.precision.determined is None:
        return "not checked for so many values: estimates lean on the prior"
    if not plan.precision.determined:
        return "no: estimates lean on the prior"
    text = _IDENTIFIES[plan.identifiable, plan.query.unbiased]
    assumed = " (assumed: so many values are not checked)"
    return f"{text}{assumed if plan.reader.identifies_by_assumption else ''}"
