"""Where commands write: places that can be written to, and that nothing is lost by."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from priorveil.cli import screen as screens
from priorveil.errors import MissingExtra
from priorveil.files import is_not_regular_file, real_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from priorveil.plans import Plan

WRITTEN = click.Path(dir_okay=False, path_type=Path)


def writable(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a place that cannot be written to, before the work."""
    if path is None:
        return None
    if str(path) == "-":
        raise click.BadParameter("- is no name of a file, and cannot be standard output here", ctx, parameter)
    if is_not_regular_file(path):
        raise click.BadParameter(f"{path} is no file, and is not replaced by one", ctx, parameter)
    target = real_path(path)
    if not target.parent.is_dir():
        folder = target.parent if path.is_symlink() else path.parent
        raise click.BadParameter(f"there is no folder {folder}", ctx, parameter)
    for place in (target, target.parent):  # a file is written beside the old one, and then takes its name
        if place.exists() and not os.access(place, os.W_OK):
            raise click.BadParameter(f"{place} cannot be written to", ctx, parameter)
    return path


def streamable(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """As `writable`; - is standard output."""
    return path if path is not None and str(path) == "-" else writable(ctx, parameter, path)


def picture(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a picture of an unknown kind, before the work."""
    if path is not None and path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise click.BadParameter(f"{path.name}: give a name that ends in .png, .svg or .pdf", ctx, parameter)
    return writable(ctx, parameter, path)


def drawable(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a picture of an unknown kind, or where none can be drawn, before the work."""
    if picture(ctx, parameter, path) is not None:
        need_plots()
    return path


def need_plots() -> None:
    """Refuse to begin where no picture can be drawn in the end."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plot")


def save_picture(figure: Figure, path: Path) -> None:
    """Write a picture, and say where its font lacks letters of the names."""
    from priorveil.studies import pictures

    if not pictures.save(figure, path):
        click.echo(
            "the font of the picture lacks some letters of the names; they are shown as boxes", err=True
        )


def draw_plan(plan: Plan, path: Path) -> None:
    """Write a picture of a plan, with its error at other budgets."""
    from priorveil.studies import compare, pictures

    with screens.waiting("designing for other budgets"):
        curve = compare.error_curve(plan)
    save_picture(pictures.plan_picture(plan, curve), path)


PLOT = click.option("--plot", type=WRITTEN, callback=drawable, help="Draw it here (.png, .svg, .pdf).")


def keep_apart(read: Mapping[str, Path | str | None], written: Mapping[str, Path | None]) -> None:
    """Refuse to write over what is read, or twice into one file."""
    places = {
        place: name for name, path in read.items() if path is not None for place in _files_of(str(path))
    }
    for name, path in written.items():
        if path is None or str(path) == "-":
            continue
        other = places.setdefault(os.path.realpath(path), name)
        if other != name:
            raise click.UsageError(f"{name} and {other} are one file, {path}: choose another name for {name}")


def _files_of(data: str) -> Iterator[str]:
    """What is read by a name: a file, all in a folder, or all that match a pattern."""
    if os.path.isdir(data):
        found = [str(path) for path in Path(data).rglob("*")]
    elif os.path.exists(data) or not glob.has_magic(data):
        found = [data]
    else:
        found = glob.glob(data, recursive=True)
    return map(os.path.realpath, found)
