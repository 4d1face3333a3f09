"""`priorveil bench`: the claims of speed and accuracy, measured here.

Examples
  priorveil bench
      list the benchmarks
  priorveil bench design
      run benchmarks/design.py
  priorveil bench design --help
      its own options; everything after NAME is passed on to it
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from priorveil.cli import options, screen


@click.command(
    epilog=options.epilog(__doc__),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--all", "everything", is_flag=True, help="Run all of them, one after another.")
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(everything: bool, name: str | None, arguments: tuple[str, ...]) -> int:
    """Measure the claims of speed and accuracy.

    Runs benchmarks/NAME.py of a checkout; without NAME it lists them. The scripts are not part of the
    installed package.
    """
    scripts = _scripts()
    if everything:
        return max((_run(script, ()) for script in scripts.values()), default=0)
    if name is None:
        lines = {name: script.read_text(encoding="utf-8").splitlines() for name, script in scripts.items()}
        rows = [(name, text[0].strip('"')) for name, text in lines.items()]
        screen.print_table(screen.open_console(), ("name", "what it measures"), rows)
        return 0
    if name not in scripts:
        raise click.UsageError(f"there is no benchmark {name!r}; there are {', '.join(scripts) or 'none'}")
    return _run(scripts[name], arguments)


def _scripts() -> dict[str, Path]:
    """Return the benchmarks of the checkout that the current directory, or this package, belongs to."""
    for root in (Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[3]):
        if (root / "src" / "priorveil").is_dir() and (root / "benchmarks").is_dir():
            files = sorted((root / "benchmarks").glob("*.py"))
            return {script.stem: script for script in files if not script.stem.startswith("_")}
    raise click.ClickException("no benchmarks here: they are part of a checkout of priorveil; run it there")


def _run(script: Path, arguments: tuple[str, ...]) -> int:
    click.echo(f"== {script.name}", err=True)
    return subprocess.run([sys.executable, str(script), *arguments], check=False).returncode
