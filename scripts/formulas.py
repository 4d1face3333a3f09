"""Typeset the formulas of the documentation when it is built: a hook of MkDocs, which mkdocs.yml names.

A fenced block `math` holds LaTeX. It becomes a drawing (SVG) of letters, which looks the same everywhere: a browser
needs no script, no font of mathematics and no request for it.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import ziamath
from pymdownx.superfences import SuperFencesException
from ziamath.tex import tex2mml

SIZE = 20  # of the letters, in the drawing's own units
ziamath.config.precision = 1
ziamath.config.math.color = "currentColor"
ziamath.config.svg2 = False  # without ids, which would not be unique on a page with several formulas


def formula(latex: str) -> str:
    """The formula as an HTML block, as wide as its letters are at the size of the text around it.

    LaTeX that cannot be converted raises an error.
    """
    try:
        mathml = tex2mml(latex)
        words = "".join(ElementTree.fromstring(mathml).itertext())
        drawing = ziamath.Math(mathml, size=SIZE).svgxml()
    except Exception as error:
        raise SuperFencesException(f"not a formula in LaTeX: {latex}") from error
    if "\\" in words:  # the converter shows an unknown command as it is
        raise SuperFencesException(f"unknown command in the formula: {latex}")
    drawing.attrib.update(width=f"{float(drawing.get('width', 0)) / SIZE:.2f}em", role="img")
    drawing.attrib["aria-label"] = " ".join(latex.split())
    del drawing.attrib["height"]  # follows from the width
    return (
        f'<div class="formula" data-search-exclude>{ElementTree.tostring(drawing, encoding="unicode")}</div>'
    )


def _fence(source: str, *others: Any, **options: Any) -> str:
    """What the Markdown extension calls for a block."""
    return formula(source)


def on_config(config: Any) -> Any:
    """Add the fence `math` to those of Markdown."""
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    fences.append({"name": "math", "class": "formula", "format": _fence})
    return config
