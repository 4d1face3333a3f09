"""Advice in the words of the command line: errors of the library name arguments, people type options."""

from __future__ import annotations

import re
from collections.abc import Callable

_OPTIONS: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"smooth it \(Prior\.from_counts\)": "smooth counts (--counts --smoothing 1)",
    r"use Prior\.from_counts": "use --counts, for rounded figures --normalise",
    r"for weights or rounded figures use Channel\.from_weights": "for rounded figures use --normalise",
    r"choose smoothing=1 \(Laplace\), 0\.5 \(Jeffreys\)": "add --smoothing 1 (Laplace) or 0.5 (Jeffreys)",
    r"or None to refuse zeros": "or leave --smoothing out to refuse zeros",
    r"Budget\(lower, upper\) with one side infinite": "--lower or --upper alone to bound one side",
    r"query=(\w+)\(\)": lambda found: f"--query {found[1].lower()}",
    r"method='(\w+)' or '(\w+)'": r"--method \1 or \2",
    r"method='(\w+)'": r"--method \1",
    r"cohort='\.\.\.'": "--cohort COLUMN",
    r" \(and project\(\) the estimate\)": "",
}


def in_options(advice: str) -> str:
    """What an error of the library says, with options in the place of arguments.

    >>> in_options("for counts use Prior.from_counts")
    'for counts use --counts, for rounded figures --normalise'
    >>> in_options("only method='mmse' can read them; design the plan with query=Distribution()")
    'only --method mmse can read them; design the plan with --query distribution'
    """
    for pattern, option in _OPTIONS.items():
        advice = re.sub(pattern, option, advice)
    return advice
