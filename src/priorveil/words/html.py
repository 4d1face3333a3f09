"""HTML for notebooks: facts, tables and notes under a title. Every text is escaped.

All colours are the page's own (`currentColor`), so that a table is readable on light and dark pages, whatever chooses
between them. Nothing is said by colour alone: without the style sheet the same texts remain. The class is named twice
where Jupyter has a rule of its own for tables, such as texts on the right: the more specific rule wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import repeat

_STYLE = """
.priorveil { line-height: 1.4; overflow-x: auto; color: inherit; }
.priorveil table { border-collapse: collapse; margin: .3em 0; font-size: inherit; color: inherit; }
.priorveil caption { text-align: left; font-weight: bold; padding: .2em 0; color: inherit; }
.priorveil.priorveil tr, .priorveil.priorveil tbody tr:nth-child(n) { background: none; }
.priorveil.priorveil th, .priorveil.priorveil td { border: 0; padding: .15em .9em .15em 0; text-align: left;
  vertical-align: top; max-width: 48em; white-space: pre-wrap; overflow-wrap: break-word; color: inherit; }
.priorveil.priorveil thead th { border-bottom: 1px solid currentColor; }
.priorveil.priorveil tbody th { font-weight: normal; }
.priorveil.priorveil .facts th { white-space: nowrap; opacity: .8; }
.priorveil.priorveil .facts td { overflow-wrap: anywhere; }
@media (max-width: 40em) { .priorveil.priorveil .facts th { white-space: normal; } }
.priorveil.priorveil .number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.priorveil.priorveil .bar { min-width: 8em; vertical-align: middle; }
.priorveil .bar span { display: block; height: .7em; background: currentColor; opacity: .35; }
.priorveil p { margin: .3em 0; max-width: 60em; }
.priorveil .warning { border-left: .3em solid currentColor; padding-left: .6em; font-weight: bold; }
"""


def sheet(title: str, *parts: str) -> str:
    """A title above parts that are HTML already."""
    head = f"<style>{_STYLE}</style><p><strong>{escape(title)}</strong></p>"
    return f'<div class="priorveil">{head}{"".join(parts)}</div>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Pairs of name and text, a row for each.

    >>> facts([("asked", "a < b")])
    '<table class="facts"><tbody><tr><th scope="row">asked</th><td>a &lt; b</td></tr></tbody></table>'
    """
    rows = "".join(f'<tr><th scope="row">{escape(n)}</th><td>{escape(text)}</td></tr>' for n, text in pairs)
    return f'<table class="facts"><tbody>{rows}</tbody></table>'


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int], bars: Sequence[float] = ()
) -> str:
    """A table under its heads; `numbers` are the columns to set on the right.

    `bars` adds a bar to each row: shares of the longest one. The bars repeat what the numbers say.
    """
    right = set(numbers)
    classes = [' class="number"' if i in right else "" for i in range(len(heads))]
    head = "".join(f'<th scope="col"{c}>{escape(text)}</th>' for text, c in zip(heads, classes, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{c}>{_cell(text)}</td>' for text, c in zip(row, classes, strict=True))}{bar}</tr>"
        for row, bar in zip(rows, _bar_cells(bars), strict=False)
    )
    head += "<td></td>" if bars else ""
    # Many pages have a style of their own for tables without a class.
    return f'<table class="rows"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(text: str) -> str:
    """A text whose indent stays on its line in a narrow window."""
    words = text.lstrip(" ")
    return "\N{NO-BREAK SPACE}" * (len(text) - len(words)) + escape(words)


def _bar_cells(lengths: Sequence[float]) -> Iterable[str]:
    if not lengths:
        return repeat("")
    longest = max(lengths)
    return [
        f'<td class="bar" aria-hidden="true"><span style="width:{100 * n / longest:.3g}%"></span></td>'
        for n in lengths
    ]


def notes(texts: Iterable[str]) -> str:
    """A paragraph for each text.

    >>> notes(["a & b"])
    '<p>a &amp; b</p>'
    """
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def warnings(texts: Iterable[str]) -> str:
    """A paragraph that stands out for each text.

    >>> warnings(["Warning: a < b"])
    '<p class="warning">Warning: a &lt; b</p>'
    """
    return "".join(f'<p class="warning">{escape(text)}</p>' for text in texts)
