"""Numbers as people read and write them: in messages, tables, plots, pages and files."""

from __future__ import annotations

import math
import re

# A comma before exactly three digits may be a decimal mark or stand between thousands, except after a zero.
_DECIMAL_COMMA = re.compile(
    r"([+-]?(?:[0-9]*(?=,(?![0-9]{3}(?![0-9])))|0*)),([0-9]+(?:e[+-]?[0-9]+)?)", re.IGNORECASE
)
_SEPARATED = re.compile(r"[+-]?[0-9]+(?:[.,' \u2019\u00a0\u202f\u066c_][0-9]+)+")


def decimal_point(text: str) -> str:
    """A number with a point for its decimal comma; any other text as it is.

    A comma before exactly three digits is not taken for a decimal mark: 1,234 may be a thousand and more.

    >>> [decimal_point(text) for text in ("12,5", "-0,125", "1,2345", "1,234", "1,234.5", "a,5")]
    ['12.5', '-0.125', '1.2345', '1,234', '1,234.5', 'a,5']
    """
    found = _DECIMAL_COMMA.fullmatch(text)
    return f"{found[1]}.{found[2]}" if found else text


def is_ambiguous_number(text: str) -> bool:
    """Whether a text has digits with separators that may be thousands: it is no number that can be read.

    >>> [is_ambiguous_number(text) for text in ("1,234", "1.234.567", "1\u066c234", "12,5", "1.234", "two")]
    [True, True, True, False, False, False]
    """
    return bool(_SEPARATED.fullmatch(text)) and read_number(text) is None


def read_number(text: str) -> float | None:
    """The number that a text stands for, with a point or a comma as its decimal mark; None if it is no number.

    >>> [read_number(text) for text in ("12,5", " 1e-3 ", "1,234", "1_000", "many")]
    [12.5, 0.001, None, None, None]
    """
    try:
        return None if "_" in text else float(decimal_point(text.strip()))
    except ValueError:
        return None


def number_text(number: float) -> str:
    """A number as people write it: 10 rather than 10.0, and 0.6 rather than 0.6000000000000001."""
    return f"{number:.12g}"


def readable_number(number: float, digits: int = 6) -> str:
    """A number with at least so many significant digits, and commas between thousands.

    >>> readable_number(123456.7), readable_number(1e5), readable_number(0.25)
    ('123,457', '100,000', '0.25')
    """
    return f"{number:,.0f}" if 10 ** (digits - 1) <= abs(number) < 1e15 else f"{number:,.{digits}g}"


def round_up(number: float) -> str:
    """A positive number with two significant digits, rounded up: a half width is never stated too small.

    >>> [round_up(x) for x in (1.8501, 0.012, 143.2, 0.0)]
    ['1.9', '0.012', '150', '0']
    """
    if number <= 0:
        return "0"
    scale = 10.0 ** (math.floor(math.log10(number)) - 1)
    return f"{math.ceil(number / scale * (1 - 1e-12)) * scale:,.12g}"


def share_text(share: float) -> str:
    """An estimated share in percent, with one decimal.

    >>> share_text(0.59649), share_text(-0.001)
    ('59.6 %', '-0.1 %')
    """
    return f"{100 * share:,.1f} %"


def share_at_least(share: float) -> str:
    """A proven share in percent, rounded down: nothing below one becomes 100 %.

    >>> share_at_least(1 - 1e-12), share_at_least(1.0), share_at_least(0.5)
    ('99.99 %', '100 %', '50.00 %')
    """
    return "100 %" if share >= 1 else f"{min(math.floor(share * 1e4 + 1e-6), 9999) / 100:.2f} %"


def percent(confidence: float) -> str:
    """A confidence, or another round share, in percent.

    >>> percent(0.95), percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * confidence:.6g} %"


def p_value_text(p: float) -> str:
    """A p-value; very small ones only as a bound.

    >>> p_value_text(0.04321), p_value_text(1e-9)
    ('p = 0.0432', 'p < 0.0001')
    """
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.3g}"


def level_text(level: float | None) -> str:
    """A privacy level as people read it.

    >>> level_text(1.0), level_text(math.inf), level_text(None)
    ('1.0000', 'infinite', '-')
    """
    return "-" if level is None else "infinite" if math.isinf(level) else f"{level:.4f}"


def level_figure(level: float, digits: int = 6) -> str:
    """A privacy level with at most so many significant digits.

    >>> level_figure(1.0), level_figure(1.567814, 3), level_figure(math.inf)
    ('1', '1.57', 'infinite')
    """
    return "infinite" if math.isinf(level) else f"{level:.{digits}g}"


def level_at_most(level: float) -> str:
    """A certified privacy level with three decimals, rounded up.

    >>> level_at_most(1.0), level_at_most(1.56781), level_at_most(math.inf)
    ('1', '1.568', 'infinite')
    """
    return "infinite" if math.isinf(level) else f"{math.ceil(level * 1000 - 1e-6) / 1000:,.12g}"


def factor_at_most(level: float) -> str:
    """The factor `e^level`, rounded up: a promise must not look smaller than it is.

    >>> factor_at_most(1.0), factor_at_most(8.0), factor_at_most(30.0)
    ('2.72', '2,981', '1.1e+13')
    """
    factor = math.exp(level)
    if factor >= 1e6:
        scale = 10.0 ** (math.floor(math.log10(factor)) - 1)
        return f"{math.ceil(factor / scale) * scale:.1e}"
    scale = 100.0 if factor < 100 else 1.0
    return f"{math.ceil(factor * scale) / scale:,.12g}"
