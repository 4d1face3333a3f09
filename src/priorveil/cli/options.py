"""Options that several commands share, and hints of errors as options."""

from __future__ import annotations

from priorveil.errors import Hint, PriorveilError

# Functions of the library that a hint may name, and the options that do the same.
_FUNCTIONS = {
    "Prior.from_counts": "--counts, or --normalise if they are rounded figures",
    "Prior.from_counts(smoothing=1)": "--counts --smoothing 1",
    "Channel.from_weights": "--normalise",
    "Budget(lower, upper)": "--lower or --upper alone",
}


def option_advice(hint: Hint) -> str:
    """Return a hint of the library in terms of options.

    >>> option_advice(Hint("method", "arc", "columns"))
    'use --method arc or columns'
    """
    if not hint.values:
        return hint.advice(_FUNCTIONS.get(hint.argument, hint.argument))
    choices = " or ".join(_word(value) for value in hint.values)
    return hint.advice(f"--{hint.argument.replace('_', '-')} {choices}")


def _word(value: object) -> str:
    """Return a value as it is typed after an option: a query by its kind."""
    return str(value) if isinstance(value, str | int | float) else type(value).__name__.lower()


def error_text(error: Exception) -> str:
    """Return what an error says, with options in the place of arguments."""
    return error.text(option_advice) if isinstance(error, PriorveilError) else str(error)
