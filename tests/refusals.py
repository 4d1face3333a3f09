"""The errors that a test expects: their class and their data. Their words are in `messages.txt` only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from priorveil.errors import PriorveilError

E = TypeVar("E", bound=PriorveilError)


@contextmanager
def raises(
    error: type[E], hint: str | None = None, cause: type[BaseException] | None = None, **data: Any
) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error of this class with these attributes.

    `hint` is an argument that one of its hints names, `cause` the class of the error that it was raised from.

    >>> from priorveil.errors import InvalidInput
    >>> with raises(InvalidInput, argument="epsilon", value=-1):
    ...     raise InvalidInput("epsilon", -1, "give a number above zero")
    """
    with pytest.raises(error) as raised:
        yield raised
    assert {name: getattr(raised.value, name) for name in data} == data
    assert cause is None or isinstance(raised.value.__cause__, cause)
    assert hint is None or hint in [each.argument for each in raised.value.hints]
