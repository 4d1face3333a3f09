"""The words of errors, all in `messages.txt`: an expression that is refused, and below it the error.

After a change of words run `PYTHONPATH=tests python tests/test_messages.py`, and review the difference.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import priorveil as pv
from priorveil import PriorveilError

WORDS = Path(__file__).with_name("messages.txt")

# What the expressions may use besides `pv` and `np`.
PRIOR = pv.Prior({"a": 0.5, "b": 0.3, "c": 0.2})
SECRET = pv.Secret.from_joint([[0.25, 0.15, 0.1], [0.25, 0.15, 0.1]])
CHANNEL = pv.Channel([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
PLAN = pv.design(PRIOR, 1.0, pv.Histogram())
LARGE = pv.design(pv.Prior.zipf(3000), 1.0, pv.Histogram(), method="unary")
ESTIMATE = PLAN.estimate(PLAN.tally([0] * 10))
NAMES = {"np": np, "pv": pv} | {name: value for name, value in globals().items() if name.isupper()}


def read() -> list[tuple[str, str]]:
    """The expressions and the errors, in their order."""
    blocks = [block.split("\n    ") for block in WORDS.read_text(encoding="utf-8").strip().split("\n\n")]
    return [(expression, words) for expression, words in blocks]


def message(expression: str) -> str:
    """The class and the words of the error that an expression raises."""
    with pytest.raises(PriorveilError) as raised:
        eval(expression, dict(NAMES))
    return f"{raised.type.__name__}: {raised.value}"


@pytest.mark.parametrize(("expression", "words"), read())
def test_an_error_says_what_is_wrong_and_what_to_do(expression: str, words: str) -> None:
    assert message(expression) == words


if __name__ == "__main__":
    text = "\n\n".join(f"{expression}\n    {message(expression)}" for expression, _ in read())
    WORDS.write_text(text + "\n", encoding="utf-8")
