"""How large the source is: lines of code, files, long functions, repeated lines. `python scripts/size.py`."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "priorveil"
LONGEST_FUNCTION, LONGEST_REPEAT = 60, 10
QUERIES = re.compile(r"isinstance\([^)]*\b(Histogram|Sum|Guess|Convex|Distribution|Linear|Query)\b")

Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


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


def long_functions(path: Path) -> Iterator[str]:
    """The functions over `LONGEST_FUNCTION` lines, docstrings left out."""
    text = path.read_text(encoding="utf-8")
    kept = {n for n, _ in code_lines(text)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = len(kept & set(range(node.lineno, (node.end_lineno or 0) + 1)))
            if length > LONGEST_FUNCTION:
                yield f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}: {length} lines"


def repeats(paths: list[Path]) -> Iterator[str]:
    """Runs of more than `LONGEST_REPEAT` identical lines of code, imports aside, in two files."""
    window = LONGEST_REPEAT + 1
    places: dict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for path in paths:
        lines = [
            (n, s)
            for n, s in code_lines(path.read_text(encoding="utf-8"))
            if not s.startswith(("import ", "from "))
        ]
        for i in range(len(lines) - window + 1):
            places[tuple(s for _, s in lines[i : i + window])].append((path, lines[i][0]))
    for found in places.values():
        if len({path for path, _ in found}) > 1:
            yield " ~ ".join(f"{path.relative_to(SOURCE)}:{n}" for path, n in found)


def main() -> int:
    """Print the sizes; the exit status tells whether there is a long function or a repeat."""
    paths = sorted(SOURCE.rglob("*.py"))
    packages: dict[str, list[int]] = defaultdict(list)
    for path in paths:
        place = path.relative_to(SOURCE)
        name = f"{place.parts[0]}/" if len(place.parts) > 1 else place.name
        packages[name].append(len(code_lines(path.read_text(encoding="utf-8"))))
    for name, counts in sorted(packages.items(), key=lambda item: -sum(item[1])):
        print(f"{sum(counts):7,} lines in {len(counts):3} files  {name}")
    total = sum(map(sum, packages.values()))
    print(f"{total:7,} lines in {len(paths):3} files in all (without blank lines, comments and docstrings)")
    tests = [line for path in paths for line in QUERIES.findall(path.read_text(encoding="utf-8"))]
    print(f"{len(tests)} isinstance tests on queries")
    faults = [*(line for path in paths for line in long_functions(path)), *repeats(paths)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
