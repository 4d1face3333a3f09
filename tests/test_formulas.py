"""The formulas of the documentation are typeset when it is built, or the build fails."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("ziamath", reason="formulas are typeset by ziamath: pip install 'priorveil[docs]'")
ROOT = Path(__file__).resolve().parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "formulas.py"))
BLOCK = re.compile(r"^```math\n(.*?)^```", re.MULTILINE | re.DOTALL)
FORMULAS = [
    formula
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for formula in BLOCK.findall(page.read_text("utf-8"))
]


@pytest.mark.parametrize("latex", FORMULAS)
def test_every_formula_becomes_a_drawing_with_its_words(latex: str) -> None:
    drawing = ElementTree.fromstring(SCRIPT["formula"](latex).replace(" data-search-exclude", ""))[0]
    assert drawing.get("role") == "img" and drawing.get("aria-label") == " ".join(latex.split())
    assert 3 < float(drawing.get("width", "").removesuffix("em")) < 30


def test_a_formula_takes_the_colour_of_the_text() -> None:
    html = SCRIPT["formula"](r"\frac{1}{2}")
    assert set(re.findall(r'fill="(.*?)"', html)) == {"currentColor"}


@pytest.mark.parametrize("latex", [r"\nosuch{x}", r"\frac{1}{", r"a &= b"])
def test_what_is_no_formula_fails_the_build(latex: str) -> None:
    import markdown

    config = type("Config", (), {"mdx_configs": {}})()
    configs = SCRIPT["on_config"](config).mdx_configs
    with pytest.raises(SCRIPT["SuperFencesException"]):
        markdown.markdown(
            f"```math\n{latex}\n```", extensions=["pymdownx.superfences"], extension_configs=configs
        )
