"""`priorveil demo`: from prior to estimate on real data, explained to a newcomer.

Examples
  priorveil demo
      on a desktop, the dashboard stays open until ctrl-C
  priorveil demo --no-browser
      ends by itself
  priorveil demo --browser
      stays until ctrl-C in any case, for instance on a server, with ssh -L
"""

from __future__ import annotations

import math
import os
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

import priorveil as pv
from priorveil.cli import options, outputs, screen
from priorveil.errors import MissingExtra
from priorveil.results.statistic_tables import answer_rows
from priorveil.words.notes import interval_title
from priorveil.words.plans import plan_facts
from priorveil.words.results import headlines, row_texts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.console import Console

    from priorveil.arrays import Array
    from priorveil.curator.demo import RunningCurator
    from priorveil.priors import Label

# People by kind of work in two public surveys: the prior, and the people who are asked.
_KNOWN: dict[Label, int] = {"Private": 33_906, "Self-employed": 5_557, "Government": 6_549, "No pay": 31}
_ASKED = {"Private": 182_242, "Self-employed": 10_356, "Government": 26_390, "No pay": 733}
# _KNOWN: UCI Adult, 1994. _ASKED: the American Community Survey, 2018.

_EPSILON = 1.0


@click.command(epilog=options.epilog(__doc__))
@options.PLOT
@click.option(
    "--devices",
    type=click.IntRange(100, 200_000),
    default=5000,
    help="Number of simulated devices that answer over HTTP.",
)
@click.option(
    "--browser/--no-browser",
    default=None,
    help="Keep the dashboard open until ctrl-C, or exit after counting. Default: keep it open on a desktop.",
)
def demo(plot: Path | None, devices: int, browser: bool | None) -> None:
    """Go from prior to estimate in a minute.

    A survey asks 219,721 people for whom they work. Nobody sends the true answer; the collector still
    learns the totals. The people are real (a census of 2018), and so is what was known about them (a census
    of 1994). Then the same survey runs as a service: a curator on this machine, and devices that answer it over HTTP.
    """
    import numpy as np

    console = screen.open_console()
    truth = np.array(list(_ASKED.values()))
    people = np.repeat(np.arange(len(truth)), truth)
    prior = pv.Prior.from_counts(_KNOWN)
    _chapter(console, 1, people=len(people))
    rows = [(str(v), f"{p:.2%}") for v, p in zip(prior.labels, prior.probabilities, strict=True)]
    screen.print_table(console, ("the prior", ""), rows, "lr")
    plan = _design(console, prior)
    _estimate(console, plan, people, truth, plot)
    _serve(console, plan, people, devices, _can_open_browser() if browser is None else browser)


def _design(console: Console, prior: pv.Prior) -> pv.Plan:
    """Show that a published mechanism leaks, and design one that does not."""
    from priorveil.studies.trade_offs import compare_with_ldp

    leak = pv.published.rr_lip(prior, _EPSILON)
    _chapter(console, 2, epsilon=_EPSILON, factor=math.exp(_EPSILON))
    console.print(f"  claimed {leak.claimed:.3f}, real {leak.leakage.lip:.3f}", style="red")
    times = math.exp(leak.leakage.lip_upper)
    console.print(f"Who reports the rarest answer is {times:,.0f} times as likely to have it as before.")
    plan = pv.design(prior, _EPSILON, pv.Distribution())
    _chapter(console, 3)
    screen.print_table(console, ("", ""), plan_facts(plan))
    console.print()
    screen.print_ldp_comparison(console, compare_with_ldp(plan))
    console.print("For a prior and a question of your own: priorveil design --help")
    return plan


def _estimate(
    console: Console, plan: pv.Plan, people: npt.NDArray[np.intp], truth: Array, picture: Path | None
) -> None:
    """Let all people report, and estimate in two ways, prior-based and unbiased."""
    tally = plan.tally(plan.privatize(people, codes=True))
    prior_based, unbiased = plan.estimate(tally, method="mmse"), plan.estimate(tally, method="unbiased")
    _chapter(console, 4, reports=plan.channel.shape[1], received=tally.reports)
    rows = []
    for there, row, other in zip(
        truth.tolist(), answer_rows(prior_based), answer_rows(unbiased), strict=True
    ):
        leaning, right = row_texts(row, "people"), row_texts(other, "people")
        rows.append((*other.label, f"{there:,}", leaning.value, right.value, right.interval))
    heads = ("people", "truth", "prior-based", "unbiased", interval_title(0.95))
    screen.print_table(console, heads, rows, "lrrrr")
    console.print("The curator knows how often each report should come if the old census were right.")
    for line in headlines(prior_based):
        console.print(f"About the prior-based column: {line}", style="bold red")
    for text in dict.fromkeys(map(str, (*prior_based.notes, *unbiased.notes))):
        console.print(text)
    if picture is not None:
        from priorveil.studies import plot_files

        panels = (("prior-based, with an old prior", prior_based), ("unbiased", unbiased))
        outputs.save_plot(plot_files.truth_plot(panels, truth, plan), picture)


def _serve(console: Console, plan: pv.Plan, people: npt.NDArray[np.intp], devices: int, stay: bool) -> None:
    """Show the same as a service, if what it needs is installed."""
    import numpy as np

    from priorveil.questions.campaign import ANSWER, ask_with

    try:
        from priorveil.curator import demo as service
    except (ImportError, MissingExtra):
        console.print(f"  no curator: {MissingExtra('the curator', 'serve')}", style="yellow")
        return
    _chapter(console, 5, devices=devices)
    campaign = ask_with(
        "For whom do you work?",
        plan,
        smallest_count=100,
        asked_by="The demo of priorveil on this machine",
        purpose="To show how a survey works without true answers",
    )
    with service.run_curator(campaign) as curator:
        codes = np.random.default_rng().choice(people, size=devices, replace=False)
        with screen.progress_bar("answering") as advance:
            answers = [{ANSWER: plan.labels[code]} for code in codes.tolist()]
            for number in service.send_answers(curator, answers):
                advance(number / devices, f"{number:,} of {devices:,}")
        console.print(f"  answered {devices:,}")
        (found,), truth = (
            curator.estimates()["result"]["findings"],
            np.bincount(codes, minlength=len(plan.labels)),
        )
        shown = zip(plan.labels, truth, found["figures"]["tables"][0]["rows"], strict=True)
        rows = [
            (str(label), f"{count:,}", f"{row['value']:,.0f}", f"{row['low']:,.0f} to {row['high']:,.0f}")
            for label, count, row in shown
        ]
        screen.print_table(console, ("people", "truth", "estimate", interval_title(0.95)), rows, "lrrr")
        _keep_open(console, curator, stay)


def _can_open_browser() -> bool:
    """Return whether this is a terminal on a desktop; elsewhere a browser would take over the terminal."""
    displays = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    desktop = sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in displays)
    return sys.stdout.isatty() and desktop


def _keep_open(console: Console, curator: RunningCurator, stay: bool) -> None:
    """Leave the dashboard open until ctrl-C, or say how to do that."""
    if not stay:
        console.print("\nThe curator stops here. To leave its dashboard open: priorveil demo --browser")
        return
    dashboard = f"{curator.url}/dashboard#{curator.campaign.id}"
    answer_page = f"{curator.url}/answer/{curator.campaign.id}"
    places = {"dashboard": dashboard, "its token": curator.token, "answer too": answer_page}
    for name, place in places.items():
        console.print(f"\n{name}:", style="bold")
        console.print(place, soft_wrap=True)
    console.print("\nctrl-C ends it")
    try:
        if _can_open_browser():
            webbrowser.open(dashboard)
        threading.Event().wait()
    except KeyboardInterrupt:
        console.print("\nThe curator has stopped.")


def _chapter(console: Console, number: int, **words: float) -> None:
    """Print the title and the text of a chapter, which are in `demo.txt`."""
    chapters = Path(__file__).with_name("demo.txt").read_text(encoding="utf-8").strip().split("\n\n")
    title, text = chapters[number - 1].format(**words).split("\n", 1)
    console.print(f"\n{title}", style="bold")
    console.print(" ".join(text.split()))
