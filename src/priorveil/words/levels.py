"""The words of privacy levels: what each means, and tables of them."""

from __future__ import annotations

from priorveil.catalogue import say
from priorveil.certify import Certificate
from priorveil.formatting import level_at_most, level_text
from priorveil.notions import Leakage, LipSides
from priorveil.words import html

LEVEL_HEADS = (say("levelNotion"), say("levelLevel"), say("levelMeaning"))


def lip_rows(levels: LipSides, assumed_prior: bool = False) -> list[tuple[str, float, str]]:
    """Name, level and meaning of LIP and of its two sides, for tables, under a prior that may be assumed."""
    return [
        ("LIP", levels.lip, say("lipMeaningAssumed" if assumed_prior else "lipMeaning")),
        (say("levelDownwards"), levels.lip_lower, say("downwardsMeaning")),
        (say("levelUpwards"), levels.lip_upper, say("upwardsMeaning")),
    ]


def leakage_rows(levels: Leakage) -> list[tuple[str, float | None, str]]:
    """Name, level and meaning of each notion, for tables."""
    assumed = levels.assumed_prior
    rows: list[tuple[str, float | None, str]] = [
        *lip_rows(levels, assumed),
        ("LDP", levels.ldp, say("ldpMeaning")),
        ("Pufferfish", levels.pufferfish, say("pufferfishMeaning")),
        ("DI", levels.di, say("diMeaningAssumed" if assumed else "diMeaning")),
        ("MIL", levels.mil, say("milMeaning")),
        ("MIP", levels.mip, say("mipMeaningAssumed" if assumed else "mipMeaning")),
    ]
    return [
        (name, level, say("upperBound", meaning=meaning) if name in levels.bounds else meaning)
        for name, level, meaning in rows
    ]


def leakage_text(levels: Leakage) -> str:
    """The levels of a channel under every notion, as a table."""
    rows = [(name, level_text(level), meaning) for name, level, meaning in leakage_rows(levels)]
    return "\n".join(f"{name:<12} {level:>9}  {meaning}" for name, level, meaning in [LEVEL_HEADS, *rows])


def leakage_html(levels: Leakage) -> str:
    """The levels of a channel, for a notebook."""
    rows = [(name, level_text(level), meaning) for name, level, meaning in leakage_rows(levels)]
    return html.sheet(say("leakageTitle"), html.table(LEVEL_HEADS, rows, [1]))


def certificate_rows(certificate: Certificate) -> list[tuple[str, float, str]]:
    """Name, proven level and meaning: of the certified notion first, if it is neither LIP nor LDP."""
    notion = certificate.notion
    own = [] if notion in ("LIP", "LDP") else [(notion, certificate.level, say("designNotionMeaning"))]
    return [*own, *lip_rows(certificate), ("LDP", certificate.ldp, say("ldpMeaning"))]


def certificate_html(certificate: Certificate) -> str:
    """The proven levels, for a notebook."""
    rows = [(name, level_at_most(level), meaning) for name, level, meaning in certificate_rows(certificate)]
    return html.sheet(say("certificateTitle"), html.table(LEVEL_HEADS, rows, [1]))
