"""Join the modules of the JavaScript client, in clients/js/src, to the one file that is shipped: priorveil.js.

Each module comes after those that it imports from. Imports go, and `export` stays only with the names that index.js
exports. So modules import names as they are, from paths that begin with a dot, and no two of them declare the same
name: a module that does otherwise is refused.

TypeScript writes the types, priorveil.d.ts, from the comments of that file.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "clients" / "js"
NAMES = r"\{(\s*\w+(?:,\s*\w+)*,?\s*)\}"
IMPORT = re.compile(rf'^import {NAMES} from "(\.[^"]*)";\n', re.MULTILINE)
REEXPORT = re.compile(rf'^export {NAMES} from "(\.[^"]*)";\n', re.MULTILINE)
TYPE_IMPORT = re.compile(r"^/\*\* @import .*\*/\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async function|function|class|const|let) (\w+))", re.MULTILINE)
DECLARED = re.compile(r"^(?:async function|function|class|const|let) (\w+)", re.MULTILINE)
WIDTH = 120


def bundle(folder: Path, entry: str = "index.js") -> str:
    """The text of one module that exports what the entry exports."""
    text = (folder / entry).read_text(encoding="utf-8")
    public = {name for names, _ in REEXPORT.findall(text) for name in re.findall(r"\w+", names)}
    parts = {
        entry: f"{REEXPORT.sub('', text).rstrip()}\n// Made from the modules in src/ by `make bundle`.\n"
    }
    for _, path in REEXPORT.findall(text):
        _add(parts, folder, posixpath.normpath(path), public)
    joined = "\n".join(parts.values())
    declared = DECLARED.findall(EXPORT.sub("", joined))
    twice = {name for name in declared if declared.count(name) > 1}
    if twice:
        raise ValueError(f"declared by two modules: {', '.join(sorted(twice))}")
    left = re.search(r"^(?:import |export (?!async |function |class |const |let )).*", joined, re.MULTILINE)
    if left:
        raise ValueError(f"not a plain import or export: {left[0]}")
    if missing := public - set(EXPORT.findall(joined)):
        raise ValueError(f"exported by index.js and declared by no module: {', '.join(sorted(missing))}")
    return joined


def _add(parts: dict[str, str], folder: Path, path: str, public: set[str]) -> None:
    """Add a module, after those that it imports from."""
    if path in parts:
        return
    text = (folder / path).read_text(encoding="utf-8")
    for _, imported in IMPORT.findall(text):
        _add(parts, folder, posixpath.normpath(posixpath.join(posixpath.dirname(path), imported)), public)
    plain = TYPE_IMPORT.sub("", IMPORT.sub("", text))
    own = EXPORT.sub(lambda found: found[0] if found[1] in public else "", plain)
    parts[path] = f"{f'// -- {path} '.ljust(WIDTH, '-')}\n{own}"


def types(client: Path) -> str:
    """The types of the one file, by TypeScript. Classes that it does not export are exported as types."""
    options = "--ignoreConfig --allowJs --declaration --emitDeclarationOnly --strict"
    options += " --target es2022 --module nodenext --types node"
    with tempfile.TemporaryDirectory() as folder:
        command = ["node_modules/.bin/tsc", *options.split(), "--outDir", folder, "priorveil.js"]
        subprocess.run(command, cwd=client, check=True)
        text = (Path(folder) / "priorveil.d.ts").read_text(encoding="utf-8")
    made = ", ".join(re.findall(r"^declare class (\w+)", text, re.MULTILINE))
    return text.replace("export {};", f"export type {{ {made} }};")


def main() -> int:
    (CLIENT / "priorveil.js").write_text(bundle(CLIENT / "src"), encoding="utf-8")
    (CLIENT / "priorveil.d.ts").write_text(types(CLIENT), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
