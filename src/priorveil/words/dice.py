"""Rows for dice and cards: the menu as a table, and the sheet that a person answers by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise

from priorveil.catalogue import say
from priorveil.formatting import level_at_most, readable_number, share_text
from priorveil.priors.label_texts import label_text
from priorveil.statistics.dice import RANDOMISERS, DiceMenu, DicePair
from priorveil.words import html
from priorveil.words.text_tables import TextTable

_MOST_PAIRS = 12  # lines of a menu
_SUITS = ("♠", "♥", "♦", "♣")
_RANKS = ("A", *map(str, range(2, 11)), "J", "Q", "K")
_FACES = tuple(map(str, range(1, 7)))
_STYLE = """
@page { size: A4; margin: 18mm; }
body { font: 13pt/1.4 sans-serif; color: #000; background: #fff; max-width: 44em; margin: 1.5em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin: 0 0 .4em; }
.question { font-size: 1.25em; border-left: .25em solid; padding-left: .6em; margin: .8em 0; }
.answers { display: flex; gap: 1.2em; margin: 1.2em 0; }
.answers section { flex: 1; border: .15em solid; border-radius: .5em; padding: .4em .9em .8em; break-inside: avoid; }
h2 { font-size: 1.1em; margin: .3em 0 .6em; overflow-wrap: anywhere; }
dl { margin: 0; }
dt { border-top: 1px solid; padding-top: .4em; }
dd { margin: 0 0 .5em; font-size: 1.35em; font-weight: bold; }
li { margin: .2em 0; }
.levels { font-size: .8em; border-top: 1px solid; padding-top: .5em; margin-top: 1.5em; }
"""


# -- the menu --------------------------------------------------------------------------------------------------


def _menu_table(menu: DiceMenu) -> TextTable:
    """The menu: if there are many pairs only some, evenly spread."""
    pairs = menu.pairs
    last, lines = len(pairs) - 1, min(len(pairs), _MOST_PAIRS)
    return _pairs_table([pairs[round(at * last / max(lines - 1, 1))] for at in range(lines)])


def _pairs_table(pairs: Sequence[DicePair]) -> TextTable:
    """A row for each pair; all are for the same prior."""
    says_yes = (say("saysYesIf", value=label_text(label)) for label in pairs[0].prior.labels)
    heads = (*says_yes, say("lipDown"), say("lipUp"), "LDP", say("varianceHead"))
    return TextTable(0, heads, [_pair_row(pair) for pair in pairs])


def _pair_row(pair: DicePair) -> tuple[str, ...]:
    proof = pair.certificate
    counts = (say("outOf", count=count, all=pair.outcomes) for count in pair.yes)
    levels = map(level_at_most, (proof.lip_lower, proof.lip_upper, proof.ldp))
    return (*counts, *levels, readable_number(pair.variance, 4))


def _menu_title(menu: DiceMenu) -> str:
    return say("diceMenuTitle", randomiser=menu.randomiser, count=f"{len(menu.pairs):,}")


def menu_text(menu: DiceMenu) -> str:
    """The menu as text."""
    return "\n".join([_menu_title(menu), *_menu_table(menu).lines()])


def menu_html(menu: DiceMenu) -> str:
    """The menu for a notebook."""
    return html.sheet(_menu_title(menu), _menu_table(menu).html())


def pair_text(pair: DicePair) -> str:
    """The rows of a pair with their levels, as a menu shows them."""
    return "\n".join(_pairs_table([pair]).lines())


def pair_html(pair: DicePair) -> str:
    """The pair for a notebook."""
    return html.sheet(pair.randomiser, _pairs_table([pair]).html())


# -- the sheet -------------------------------------------------------------------------------------------------


def sheet_page(pair: DicePair, question: str = "") -> str:
    """The page that a person answers by: what each outcome means for both answers, and why that protects them."""
    title = escape(say("diceSheetTitle"))
    asked = f'<p class="question">{escape(question)}</p>' if question else ""
    steps = [say(_THROWS[pair.randomiser]), say("diceFindBox"), say("diceSayWord")]
    items = "".join(f"<li>{escape(step)}</li>" for step in steps)
    boxes = "".join(_answer_box(pair, at) for at in range(2))
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n<h1>{title}</h1>{asked}\n<ol>{items}</ol>\n"
        f'<div class="answers">{boxes}</div>\n{html.notes(_reasons(pair))}\n'
        f'<p class="levels">{escape(_levels(pair))}</p>\n</body>\n</html>\n'
    )


def _answer_box(pair: DicePair, at: int) -> str:
    """What a person with one of the answers says, outcome by outcome."""
    head = say("ifTrueAnswer", value=label_text(pair.prior.labels[at]))
    yes = pair.yes[at]
    spans = pair.spans(yes)
    rest = _rest(spans, len(RANDOMISERS[pair.randomiser]))
    name = _NAMES[pair.randomiser]
    lines = [
        (name(each), say("sayWord", word=say(key)))
        for each, key in ((spans, "yesOption"), (rest, "noOption"))
    ]
    entries = "".join(f"<dt>{escape(thrown)}</dt><dd>{escape(word)}</dd>" for thrown, word in lines)
    return f"<section><h2>{escape(head)}</h2><dl>{entries}</dl></section>"


def _rest(spans: Sequence[range], size: int) -> tuple[range, ...]:
    """The outcomes that the spans leave out."""
    edges = [0, *(edge for span in spans for edge in (span.start, span.stop)), size]
    return tuple(range(a, b) for a, b in list(pairwise(edges))[::2] if a < b)


def _reasons(pair: DicePair) -> list[str]:
    """Why nobody can tell: the beliefs after each word, of somebody who knows how common the first answer is."""
    share, value = float(pair.prior.probabilities[0]), label_text(pair.prior.labels[0])
    after = [share_text(float(belief)) for belief in pair.channel.posterior(pair.prior)[0]]
    belief = say("diceBelief", share=share_text(share), value=value, yes=after[0], no=after[1])
    assert pair.lifts.ldp is not None  # either word may come from either answer
    factor = math.ceil(100 * pair.lifts.ldp) / 100  # exact: a float might be rounded up twice
    return [say("diceWhy"), belief, say("diceOdds", factor=f"{factor:,.12g}")]


def _levels(pair: DicePair) -> str:
    """The rows and their levels, for those who know what these are."""
    first, second = pair.yes
    lip, ldp = level_at_most(pair.certificate.lip), level_at_most(pair.certificate.ldp)
    return say("diceLevels", first=first, second=second, all=pair.outcomes, lip=lip, ldp=ldp)


def _run(first: str, last: str) -> str:
    return first if first == last else say("outcomesFromTo", first=first, last=last)


def _faces(spans: Sequence[range]) -> str:
    """Faces of one die."""
    return say("aFace", faces=", ".join(_run(_FACES[span[0]], _FACES[span[-1]]) for span in spans))


def _sums(spans: Sequence[range]) -> str:
    """Sums of two dice, which begin at two."""
    return say("aSum", sums=", ".join(_run(str(span[0] + 2), str(span[-1] + 2)) for span in spans))


def _sides_and_faces(spans: Sequence[range]) -> str:
    """Heads or tails, each with faces of the die."""
    return _by_block(spans, _FACES, (say("heads"), say("tails")), "sideAndFaces", "anyFace")


def _cards(spans: Sequence[range]) -> str:
    """Suits, each with its cards."""
    return _by_block(spans, _RANKS, _SUITS, "suitAndRanks", "anyCard")


def _by_block(
    spans: Sequence[range], members: Sequence[str], blocks: Sequence[str], part: str, whole: str
) -> str:
    """Outcomes that come in blocks: whole ones, and runs of the members of others."""
    texts = []
    for at, block in enumerate(blocks):
        own = range(at * len(members), (at + 1) * len(members))
        for span in spans:
            inside = [member for outcome, member in zip(own, members, strict=True) if outcome in span]
            if inside:
                key = whole if len(inside) == len(members) else part
                texts.append(say(key, block=block, run=_run(inside[0], inside[-1])))
    return "; ".join(texts)


_THROWS = {
    "die": "throwDie",
    "coin and die": "throwCoinAndDie",
    "two dice": "throwTwoDice",
    "cards": "drawCard",
}
_NAMES: dict[str, Callable[[Sequence[range]], str]] = {
    "die": _faces,
    "coin and die": _sides_and_faces,
    "two dice": _sums,
    "cards": _cards,
}
