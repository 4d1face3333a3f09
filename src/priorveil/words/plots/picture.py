"""The figure that all pictures are drawn on. Importing this module loads matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

from priorveil.words.plots.house_style import house_style

_NOTEBOOK_DPI = 100  # pictures have more dots than that, so that they are sharp on fine screens


class Picture(Figure):
    """A figure without a window. Notebooks show it, also where pyplot was never imported."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture for a notebook, with its width and height on the page."""
        file = io.BytesIO()
        with house_style():
            self.savefig(file, format="png", metadata={"Software": "priorveil"})
        width, height = (round(_NOTEBOOK_DPI * inches) for inches in self.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}
