"""What can go wrong, and what to do about it.

    PriorveilError
    ├── InvalidInput          a wrong argument (also a ValueError)
    │   ├── InvalidPrior      not a probability distribution with full support
    │   ├── InvalidSecret     a secret that does not fit the prior
    │   ├── InvalidChannel    not a row-stochastic matrix
    │   ├── OutsideDomain     a value the plan has never heard of, with its row
    │   └── ForeignReport     a report that this plan cannot have made
    ├── Infeasible            no channel, or none of this method, meets the request
    ├── CertificateError      a channel breaks the budget it was held against
    ├── NotIdentifiable       reports alone do not determine the distribution
    ├── BudgetExceeded        spending this would pass the ledger's limit
    ├── TooLarge              the result would not fit; ask for something smaller
    ├── PlanError             a plan file that cannot be trusted, with the field
    │   └── UnknownVersion    written by a newer priorveil
    ├── DataNotFound          a data set that is not on this machine
    └── MissingExtra          an optional library is not installed

Every error says which argument, shows the value, and says what to do; each carries its data as
attributes. Raw private values never appear in a message.
"""

from __future__ import annotations

_SHOWN = 80


def shown(value: object) -> str:
    """A value as an error message shows it: on one line, and without its middle if it is long.

    >>> shown(list(range(100)))
    '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11... 90, 91, 92, 93, 94, 95, 96, 97, 98, 99]'
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2 - 3]}...{text[-_SHOWN // 2 :]}"


def counted(number: int, thing: str) -> str:
    """How many of a thing there are, as a message says it; the plural ends in s.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


class PriorveilError(Exception):
    """The root of all errors raised on purpose."""


class InvalidInput(PriorveilError, ValueError):
    """A wrong argument: names it, shows it, says what to do.

    >>> print(InvalidInput("epsilon", -1, "give a number above zero"))
    epsilon = -1: give a number above zero
    """

    def __init__(self, argument: str, value: object, advice: str) -> None:
        super().__init__(f"{argument} = {shown(value)}: {advice}")
        self.argument = argument
        self.value = value
        self.advice = advice


class InvalidPrior(InvalidInput):
    """Not a probability distribution with full support."""


class InvalidSecret(InvalidInput):
    """A secret that does not fit the prior."""


class InvalidChannel(InvalidInput):
    """Not a row-stochastic matrix."""


class OutsideDomain(InvalidInput):
    """A value outside the plan's domain. Says in which row, never what the value was."""

    def __init__(self, row: int, domain: str) -> None:
        PriorveilError.__init__(
            self, f"values[{row}] is outside the domain ({domain}): correct or remove it before privatising"
        )
        self.argument = "values"
        self.row = row
        self.advice = "correct or remove it before privatising"


class ForeignReport(InvalidInput):
    """A report that this plan cannot have made."""


class Infeasible(PriorveilError):
    """No channel, or none of this method, meets the request."""


class CertificateError(PriorveilError):
    """A channel breaks the budget it was held against; `breach` says where."""

    def __init__(self, message: str, breach: object = None) -> None:
        super().__init__(message)
        self.breach = breach


class NotIdentifiable(PriorveilError):
    """Reports alone do not determine the distribution."""


class BudgetExceeded(PriorveilError):
    """Spending this would pass the ledger's limit."""


class TooLarge(PriorveilError):
    """The result would not fit; ask for something smaller."""


class PlanError(PriorveilError):
    """A plan file that cannot be trusted; `field` names the place."""

    def __init__(self, field: str, advice: str) -> None:
        super().__init__(f"plan field {field!r}: {advice}")
        self.field = field
        self.advice = advice


class UnknownVersion(PlanError):
    """Written by a newer priorveil than this one."""


class DataNotFound(PriorveilError):
    """A data set that is not on this machine."""


class MissingExtra(PriorveilError):
    """An optional library is not installed; the message names the extra that brings it.

    >>> print(MissingExtra("matplotlib", "plot"))
    matplotlib is not installed: pip install 'priorveil[plot]'
    """

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed: pip install 'priorveil[{extra}]'")
        self.library = library
        self.extra = extra
