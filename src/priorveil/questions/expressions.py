"""Expressions of XLSForms: conditions on earlier choices (`relevant`), and ranges of numbers (`constraint`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

Gates = dict[str, list[str]]  # the codes of earlier choices after which a question is asked
OtherCodes = Callable[[str, Collection[str]], list[str]]  # all codes of a choice but these

_NUMBER = r"([+-]?\d+(?:\.\d+)?)"
_BOUND = re.compile(rf"\.\s*([<>]=?)\s*{_NUMBER}")
_EQUALS = re.compile(r"""\$\{\s*([\w.-]+)\s*\}\s*(!?=)\s*(?:(['"])([^'"]*)\3|([\w.-]+))""")
_SELECTED = re.compile(r"""selected\s*\(\s*\$\{\s*([\w.-]+)\s*\}\s*,\s*['"]([^'"]+)['"]\s*\)""")
_NOT = re.compile(r"not\s*(\(.*\))", re.I | re.S)


class UnreadableCondition(ValueError):
    """A condition that cannot be converted; its text says what to write instead."""


def read_condition(text: str, other_codes: OtherCodes) -> Gates:
    """A condition such as `${works} = 'yes' or ${works} = 'sometimes'`; `and` binds more closely than `or`.

    >>> def other_codes(gate, codes):
    ...     return [code for code in ("yes", "no", "sometimes") if code not in codes]
    >>> read_condition("${works} != 'no' and (${old} = 'yes' or ${old} = 'no')", other_codes)
    {'works': ['yes', 'sometimes'], 'old': ['yes', 'no']}
    """
    text = _without_brackets(text)
    alternatives, terms = _split(text, "or"), _split(text, "and")
    if len(alternatives) > 1:
        gate, codes = _one_gate("or", [read_condition(part, other_codes) for part in alternatives])
        return {gate: codes}
    if len(terms) > 1:
        return all_of(read_condition(part, other_codes) for part in terms)
    negated, equals, selected = _NOT.fullmatch(text), _EQUALS.fullmatch(text), _SELECTED.fullmatch(text)
    if negated and _closing_bracket(negated[1]) == len(negated[1]) - 1:
        gate, codes = _one_gate("not", [read_condition(negated[1], other_codes)])
        return {gate: other_codes(gate, codes)}
    if equals:
        gate, comparison, _, quoted, number = equals.groups()
        code = number if quoted is None else quoted
        return {gate: [code] if comparison == "=" else other_codes(gate, [code])}
    if selected:
        return {selected[1]: [selected[2]]}
    raise UnreadableCondition("write ${question} = 'code', or selected(${question}, 'code')")


def all_of(conditions: Iterable[Gates]) -> Gates:
    """The condition that holds if all of these do."""
    asked_if: Gates = {}
    for condition in conditions:
        for gate, codes in condition.items():
            asked_if[gate] = [code for code in asked_if.get(gate, codes) if code in codes]
    return asked_if


def _one_gate(word: str, conditions: Iterable[Gates]) -> tuple[str, list[str]]:
    """The question that all these conditions are about, and the codes of any of them."""
    pairs = [pair for condition in conditions for pair in condition.items()]
    if len({gate for gate, _ in pairs}) > 1:
        raise UnreadableCondition(f"with `{word}`, compare one question only")
    return pairs[0][0], list(dict.fromkeys(code for _, codes in pairs for code in codes))


def read_range_constraint(constraint: str, is_whole: bool) -> list[float] | None:
    """The ends of a range that a constraint such as `. >= 0 and . <= 80` allows; None if it is none.

    >>> read_range_constraint("(. < 80) and .>0", is_whole=True), read_range_constraint(". > 17", is_whole=True)
    ([1.0, 79.0], None)
    """
    bounds = [_BOUND.fullmatch(_without_brackets(part)) for part in _split(constraint, "and")]
    ends: dict[str, float] = {}
    for bound in bounds:
        if bound is None or bound[1][0] in ends:
            return None
        inside = 1.0 if is_whole and bound[1] in "<>" else 0.0  # the next whole number
        ends[bound[1][0]] = float(bound[2]) + (inside if bound[1][0] == ">" else -inside)
    return [ends[">"], ends["<"]] if len(ends) == 2 else None


def _split(text: str, word: str) -> list[str]:
    """The parts of an expression around a word outside brackets."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and re.match(rf"\s{word}\s", text[at : at + len(word) + 2], re.I):
            parts.append(text[begin:at])
            begin = at + len(word) + 2
    return [*parts, text[begin:]]


def _without_brackets(text: str) -> str:
    """An expression without spaces and brackets around all of it."""
    text = text.strip()
    while text.startswith("(") and _closing_bracket(text) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closing_bracket(text: str) -> int:
    """The position of the bracket that closes the first one."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at
    return -1
