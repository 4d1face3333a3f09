"""`priorveil demo`: the whole loop on real data, told to somebody new."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from priorveil.cli import outputs
from priorveil.cli import screen as screens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.console import Console

    from priorveil.curator.demo import Running
    from priorveil.plans import Plan
    from priorveil.plans.estimate import Estimate
    from priorveil.priors import Array, Label, Prior

# People by kind of work, as two public surveys count them: what everyone knows, and who is asked.
_KNOWN: dict[Label, int] = {
    "Private": 33_906,
    "Self-employed": 5_557,
    "Government": 6_549,
    "No pay": 31,
}  # UCI Adult, 1994
_ASKED = {"Private": 182_242, "Self-employed": 10_356, "Government": 26_390, "No pay": 733}  # ACS, 2018

_QUESTION = "For whom do you work?"
_EPSILON = 1.0
_EXAMPLES = """\b
Examples
  priorveil demo
      the whole loop; on a desktop, the dashboard stays open until ctrl-C
  priorveil demo --no-browser
      ends by itself
  priorveil demo --browser
      stays until ctrl-C in any case, for instance on a server that you reach with ssh -L
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--plot",
    type=outputs.WRITTEN,
    default=Path("priorveil-demo.png"),
    show_default=True,
    callback=outputs.picture,
    help="Where the picture goes.",
)
@click.option(
    "--devices",
    type=click.IntRange(100, 200_000),
    default=5000,
    show_default=True,
    help="How many devices answer over HTTP.",
)
@click.option(
    "--browser/--no-browser",
    default=None,
    help="Leave the dashboard open until ctrl-C, or end when all is counted. Without either: left open where "
    "this is a terminal on a desktop.",
)
def demo(plot: Path, devices: int, browser: bool | None) -> int:
    """See the whole loop in a minute.

    A survey asks 219,721 people for whom they work. Nobody tells the truth outright; the collector still
    learns the totals. Real people (a census of 2018), and what was known about them (a census of 1994). Then
    the same as a service: a curator on this machine, and devices that answer it over HTTP.
    """
    screen = screens.console()
    people, truth, origin = _crowd()
    prior = _know(screen, origin, len(people))
    _leak(screen, prior)
    plan = _build(screen, prior)
    told = _run(screen, plan, people, truth)
    _draw(screen, told, truth, prior, plot)
    _serve(screen, plan, people, devices, _can_open() if browser is None else browser)
    return 0


def _crowd() -> tuple[npt.NDArray[np.intp], Array, str]:
    """Who is asked: the code of each person, the true counts, and where they are from."""
    import numpy as np

    from priorveil.errors import DataNotFound
    from priorveil.studies import datasets

    labels = list(_ASKED)
    try:
        census = datasets.acs()
        people = np.array([labels.index(work) for work in census.work])
        origin = "the American Community Survey of 2018, ages 19 to 34, person by person"
    except DataNotFound:
        people = np.repeat(np.arange(len(labels)), list(_ASKED.values()))
        origin = "the American Community Survey of 2018, ages 19 to 34, from its totals"
    return people, np.bincount(people, minlength=len(labels)).astype(float), origin


def _know(screen: Console, origin: str, size: int) -> Prior:
    from priorveil.priors import Prior

    prior = Prior.from_counts(_KNOWN)
    _chapter(screen, "1. What everyone knows")
    screen.print(
        f"We ask {size:,} people for whom they work ({origin}). Nobody shall have to trust us, so every "
        "device perturbs its answer before it leaves. How much noise that needs depends on what is public "
        "already: here, an old census (1994)."
    )
    rows = [(str(v), f"{p:.2%}") for v, p in zip(prior.labels, prior.probabilities, strict=True)]
    screens.print_table(screen, ("the prior", ""), rows, "lr")
    return prior


def _leak(screen: Console, prior: Prior) -> None:
    from priorveil.studies import published

    form = published.rr_lip(prior, _EPSILON)
    _chapter(screen, "2. A published mechanism that leaks")
    screen.print(
        f"We promise epsilon {_EPSILON:g}: no report moves the belief in anyone's answer by more than a "
        f"factor {math.exp(_EPSILON):.2f}, up or down. The closed form in the literature (tell the truth, "
        "or else draw an answer from the prior) claims that. Measured:"
    )
    times = math.exp(form.leakage.lip_upper)
    screen.print(f"  claimed {form.claimed:.3f}, real {form.leakage.lip:.3f}", style="red")
    screen.print(f"Who reports the rarest answer is {times:,.0f} times as likely to have it as before.")


def _build(screen: Console, prior: Prior) -> Plan:
    from priorveil.designs import design
    from priorveil.queries import Distribution
    from priorveil.studies.compare import best_ldp

    _chapter(screen, "3. A mechanism that keeps its promise")
    plan = design(prior, _EPSILON, Distribution())
    rival = best_ldp(plan)
    screen.print(
        "priorveil searches all mechanisms that keep the promise for the one that learns the totals with the "
        "least noise, and proves how near it came. In exact arithmetic, on the integers that devices draw "
        "from, it also proves that the promise is kept."
    )
    c = plan.certificate
    screen.print(
        f"  certified: {c.lip:.3f} under the prior, {c.ldp:.3f} whatever anyone knows", style="green"
    )
    rows = [("this plan", screens.shown_error(plan.expected_mse))]
    if rival is not None:
        rows.append(("best without a prior (LDP)", screens.shown_error(rival.error)))
    rows.append(("no mechanism is below", screens.shown_error(plan.lower_bound)))
    screens.print_table(screen, ("noise (variance per person)", ""), rows, "lr")
    return plan


@dataclass(frozen=True)
class _Told:
    """What the curator makes of the reports, in two ways."""

    leaning: Estimate
    free: Estimate


def _run(screen: Console, plan: Plan, people: npt.NDArray[np.intp], truth: Array) -> _Told:
    _chapter(screen, "4. People report, the curator estimates")
    reports = plan.privatize(people)
    tally = plan.tally(reports)
    told = _Told(plan.estimate(tally, method="mmse"), plan.estimate(tally, method="unbiased"))
    screen.print(
        f"Each device draws one of {plan.channel.shape[1]} possible reports, with the operating system's "
        f"randomness. The curator only ever sees the {tally.reports:,} reports."
    )
    low, high = told.free.interval()
    columns = zip(plan.labels, truth, told.leaning.values, told.free.values, low, high, strict=True)
    rows = [
        (str(label), f"{t:,.0f}", f"{m:,.0f}", f"{u:,.0f}", f"{a:,.0f} to {b:,.0f}")
        for label, t, m, u, a, b in columns
    ]
    heads = ("people", "truth", "trusting the prior", "unbiased", "95 % interval")
    _print_estimates(screen, heads, rows)
    _check(screen, told.free)
    return told


def _print_estimates(screen: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table where it fits; else a block for each row, so that no number is cut."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    if sum(widths) + 2 * len(widths) <= screen.width:
        screens.print_table(screen, heads, rows, "l" + "r" * len(heads[1:]))
        return
    for label, *figures in rows:
        screen.print(label)
        lines = [(f"  {head}", figure) for head, figure in zip(heads[1:], figures, strict=True)]
        screens.print_table(screen, ("", ""), lines, "lr")


def _check(screen: Console, estimate: Estimate) -> None:
    """What the law of the reports says of the prior."""
    chance = estimate.prior_check
    if chance is None:
        return
    shown = "below 0.0001" if chance < 1e-4 else f"{chance:.3g}"
    screen.print(
        "The curator knows how often each report should come if the old census were right. The chance of "
        f"what came is {shown}."
    )
    if chance < 0.01:
        screen.print(
            "So the old census does not describe these people, and the estimate that trusts it is wrong. "
            "The unbiased one needs no right prior: there the prior shapes the noise, never the answer."
        )


def _draw(screen: Console, told: _Told, truth: Array, prior: Prior, path: Path) -> None:
    from priorveil.errors import MissingExtra
    from priorveil.studies import pictures

    _chapter(screen, "5. A picture")
    try:
        panels = (("trusting an old prior", told.leaning), ("unbiased", told.free))
        outputs.save_picture(pictures.truth_picture(panels, truth, prior), path)
        screen.print(f"  drawn in {path}")
    except MissingExtra as error:
        screen.print(f"  no picture: {error}", style="yellow")


def _serve(screen: Console, plan: Plan, people: npt.NDArray[np.intp], devices: int, stays: bool) -> None:
    """The same as a service, where what it needs is installed."""
    from priorveil.errors import MissingExtra

    _chapter(screen, "6. The same as a service")
    try:
        from priorveil.curator import demo as service
    except (ImportError, MissingExtra) as error:
        library = (getattr(error, "name", None) or "httpx").partition(".")[0]
        told = error if isinstance(error, MissingExtra) else MissingExtra(library, "serve")
        screen.print(f"  no curator: {told}", style="yellow")
        return _farewell(screen)
    from priorveil.collect.campaign import Campaign

    campaign = Campaign(_QUESTION, {"everyone": plan}, smallest_count=100)
    screen.print(
        f"A curator starts on this machine. {devices:,} of these people answer, each on a device of its own, over "
        "HTTP; the curator stores the reports in SQLite and estimates while they come in."
    )
    with service.running(campaign) as curator:
        codes = _asked(people, devices)
        with screens.bar("answering") as bar:
            numbers = count(1)

            def done() -> None:
                number = next(numbers)
                bar(number / devices, f"{number:,} of {devices:,}")

            service.answered(curator, codes.tolist(), done)
        screen.print(f"  answered {devices:,}")
        _compare(screen, plan, curator.estimates(), codes)
        _farewell(screen)
        _stay(screen, curator, stays)


def _asked(people: npt.NDArray[np.intp], devices: int) -> npt.NDArray[np.intp]:
    """Some of the people, at random."""
    import numpy as np

    return np.random.default_rng().choice(people, size=devices, replace=False)


def _compare(screen: Console, plan: Plan, found: dict[str, Any], codes: npt.NDArray[np.intp]) -> None:
    """What the curator estimates beside what the devices hold, which only this demo knows."""
    import numpy as np

    cohort = found["cohorts"][0]
    truth = np.bincount(codes, minlength=len(plan.labels))
    columns = zip(plan.labels, truth, cohort["values"], cohort["lower"], cohort["upper"], strict=True)
    rows = [(str(v), f"{t:,}", f"{e:,.0f}", f"{a:,.0f} to {b:,.0f}") for v, t, e, a, b in columns]
    _print_estimates(screen, ("people", "truth", "estimate", "95 % interval"), rows)


def _can_open() -> bool:
    """Whether a person is before this terminal, and a browser can show them a page."""
    import webbrowser

    if not sys.stdout.isatty():
        return False
    if sys.platform.startswith("linux") and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        return False  # what is left are browsers that would take the terminal
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _stay(screen: Console, curator: Running, stays: bool) -> None:
    """Leave the dashboard open until ctrl-C, or say how to."""
    import webbrowser

    if not stays:
        screen.print("\nThe curator stops here. To leave its dashboard open: priorveil demo --browser")
        return
    for name, told in (
        ("dashboard", curator.dashboard),
        ("its token", curator.token),
        ("answer too", curator.answer_page),
    ):
        screen.print(f"\n{name}:", style="bold")
        screen.print(told, soft_wrap=True)
    screen.print("\nctrl-C ends it")
    try:
        if _can_open():
            webbrowser.open(curator.dashboard)
        curator.stay()
    except KeyboardInterrupt:
        screen.print("\nThe curator has stopped.")


def _farewell(screen: Console) -> None:
    _chapter(screen, "Where to go")
    rows = [
        ("priorveil design --help", "your own prior, your own question"),
        ("priorveil inspect --help", "what a plan promises, and how good it is"),
        ("priorveil audit --help", "what any other mechanism leaks"),
        ("priorveil serve --help", "a curator of your own"),
    ]
    screens.print_table(screen, ("", ""), rows)


def _chapter(screen: Console, title: str) -> None:
    screen.print(f"\n{title}", style="bold")
