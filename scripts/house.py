"""A report on the source: `make house`. It measures and judges nothing.

Lines of code, long functions, repeated lines, and the modules that three everyday jobs pass through. A module counts
for a job if one of its functions runs during it. Code that runs once, at import, does not count: each job runs twice,
on different input, and the second run is traced.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import httpx
import numpy as np

import priorveil as pv
from priorveil import cli
from priorveil.curator import create_app, open_store
from priorveil.curator.tokens import Token
from priorveil.device.wire import Report, fresh_id, words_to_hex
from priorveil.questions.campaign import ask
from priorveil.tables import privatize_table

SOURCE = Path(pv.__file__).resolve().parent
SHOWN = 10  # of the longest modules and functions
REPEATED = 10  # identical lines of code in two places are worth a look
TOKEN = "a curator's token"

Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


# Lines


def code_lines(text: str) -> list[tuple[int, str]]:
    """The numbered lines of a module that are not blank, a comment or part of a docstring."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Node) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            skipped.update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return [
        (n, s.strip()) for n, s in lines if s.strip() and not s.strip().startswith("#") and n not in skipped
    ]


def function_lengths(text: str) -> Iterator[tuple[int, int, str]]:
    """The lines of code, the first line and the name of each function."""
    numbers = {n for n, _ in code_lines(text)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = numbers & set(range(node.lineno, (node.end_lineno or 0) + 1))
            yield len(own), node.lineno, node.name


def repeats(texts: dict[str, str]) -> Iterator[str]:
    """The places of `REPEATED` identical lines of code in two modules, imports aside."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for module, text in texts.items():
        lines = [(n, s) for n, s in code_lines(text) if not s.startswith(("import ", "from "))]
        for i in range(len(lines) - REPEATED + 1):
            places[tuple(s for _, s in lines[i : i + REPEATED])].append((module, lines[i][0]))
    for same in places.values():
        if len({module for module, _ in same}) > 1:
            yield " ~ ".join(f"{module}:{n}" for module, n in same)


def numeric_constants(text: str) -> int:
    """How many names of a module are set to a number, or to an expression of numbers."""
    assignments = [node for node in ast.parse(text).body if isinstance(node, ast.Assign | ast.AnnAssign)]
    values = [list(ast.walk(node.value)) for node in assignments if node.value is not None]
    arithmetic = (
        ast.Constant | ast.UnaryOp | ast.BinOp | ast.Tuple | ast.operator | ast.unaryop | ast.expr_context
    )
    return sum(
        sum(isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in parts)
        for parts in values
        if all(isinstance(part, arithmetic) for part in parts)
    )


def print_lines() -> None:
    """Print how long packages, modules and functions are."""
    texts = {
        str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8")
        for path in sorted(SOURCE.rglob("*.py"))
    }
    lengths = {module: len(code_lines(text)) for module, text in texts.items()}
    packages: dict[str, list[str]] = defaultdict(list)
    for module in texts:
        package, inside, _ = module.partition("/")
        packages[package + inside].append(module)
        packages["in all"].append(module)
    print("Lines of code, without blank lines, comments and docstrings; numbers in constants of modules:")
    for name, modules in sorted(packages.items(), key=lambda item: sum(lengths[m] for m in item[1])):
        lines, numbers = sum(lengths[m] for m in modules), sum(numeric_constants(texts[m]) for m in modules)
        print(f"{lines:7,} lines in {len(modules):3} files, {numbers:4} numbers  {name}")
    print("\nLongest modules:")
    for module, length in sorted(lengths.items(), key=lambda item: -item[1])[:SHOWN]:
        print(f"{length:7,} lines  {module}")
    print("\nLongest functions:")
    functions = [
        (length, f"{module}:{n} {name}")
        for module, text in texts.items()
        for length, n, name in function_lengths(text)
    ]
    for length, place in sorted(functions, reverse=True)[:SHOWN]:
        print(f"{length:7,} lines  {place}")
    print(f"\nRuns of {REPEATED} lines that stand in two modules:")
    print("\n".join(repeats(texts)) or "none")


# Modules that a job passes through


class Trace:
    """The modules of priorveil whose functions run, in any thread, while the trace is on."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.on = False
        threading.setprofile(self._note)  # threads that start from now on
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        file = frame.f_code.co_filename
        if self.on and event == "call" and file.startswith(str(SOURCE)):
            self.modules.add(str(Path(file).relative_to(SOURCE)))


def design(trace: Trace) -> None:
    """Design a plan for four values."""
    pv.design(pv.Prior([0.4, 0.3, 0.2, 0.1]), 1.0, pv.Histogram())
    trace.on = True
    pv.design(pv.Prior([0.69, 0.11, 0.13, 0.07]), 1.0, pv.Histogram())


async def _post(trace: Trace, folder: Path) -> None:
    campaign = ask("Which kind of work?", pv.Prior([0.69, 0.11, 0.13, 0.07]), smallest_count=1)
    (form,) = campaign.cohorts.values()
    store = open_store(str(folder / "reports.db"))
    await store.open()
    await store.add_campaign(campaign)
    await store.add_token(Token.of(TOKEN, "house", "admin"))
    await store.close()
    app = create_app(open_store(str(folder / "reports.db")))
    where = f"/v1/campaigns/{campaign.id}"
    async with (
        app.lifespan(),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://curator") as http,
    ):
        for on in (False, True):
            (words,) = form.privatize({"answer": [1]})
            report = Report(fresh_id(), campaign.id, form.id, words_to_hex(words)).document()
            trace.on = on
            (await http.post(f"{where}/reports", json=report)).raise_for_status()
            headers = {"authorization": f"Bearer {TOKEN}"}
            (await http.get(f"{where}/estimates", headers=headers)).raise_for_status()
            trace.on = False


def posted_report(trace: Trace) -> None:
    """Post a report, until it is durable, and read the estimate that holds it."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_post(trace, Path(folder)))


def parquet_estimate(trace: Trace) -> None:
    """Run `priorveil estimate` on a plan and a Parquet file of reports."""
    plan = pv.design(pv.Prior([0.69, 0.11, 0.13, 0.07]), 1.0, pv.Histogram())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.parquet"
        plan.save(Path(folder) / "plan.json")
        for seed, on in ((1, False), (2, True)):
            values = np.random.default_rng(seed).integers(0, 4, 1000)
            privatize_table({"value": values}, plan, "value", path, replace=True)
            trace.on = on
            with contextlib.redirect_stdout(io.StringIO()):
                cli.run(["estimate", str(Path(folder) / "plan.json"), str(path)])


JOBS: dict[str, Callable[[Trace], None]] = {
    "design of four values": design,
    "posted report": posted_report,
    "estimate of a Parquet file": parquet_estimate,
}


def print_jobs() -> None:
    """Print the modules that each job passes through."""
    for name, job in JOBS.items():
        trace = Trace()
        job(trace)
        trace.on = False
        print(f"\n{name}: {len(trace.modules)} modules")
        for module in sorted(trace.modules):
            print(f"  {module}")


if __name__ == "__main__":
    print_lines()
    print_jobs()
