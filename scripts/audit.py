"""Ask for known vulnerabilities of everything that is installed here (`make audit`).

pip-audit alone ends well when its service knows none of the packages, for instance where only a mirror can be
reached. Here that is an end of its own: status 0 only if every package was looked up and nothing was found, 1 if
something was found, 2 if nothing, or not everything, could be looked up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

COMMAND = [
    "-m",
    "pip_audit",
    "--format",
    "json",
    "--progress-spinner",
    "off",
    "--skip-editable",
    "--timeout",
    "30",
]
OURS = "priorveil"


def verdict(packages: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """The exit status and what to say about the packages of a pip-audit report.

    >>> verdict([{"name": "a", "version": "1", "vulns": []}])
    (0, ['1 packages looked up: nothing is known against them'])
    >>> verdict([{"name": "a", "skip_reason": "not found"}])
    (2, ['no vulnerability service could be asked: nothing was learnt about 1 packages'])
    """
    others = [package for package in packages if package["name"] != OURS]
    known = [package for package in others if "vulns" in package]
    found = [_told(package, flaw) for package in known for flaw in package["vulns"]]
    unknown = [package["name"] for package in others if "vulns" not in package]
    if not known:
        return 2, [
            f"no vulnerability service could be asked: nothing was learnt about {len(unknown)} packages"
        ]
    if unknown:
        found.append(f"{len(known)} packages looked up, {len(unknown)} not: {', '.join(sorted(unknown))}")
    if any(package["vulns"] for package in known):
        return 1, found
    return (2, found) if unknown else (0, [f"{len(known)} packages looked up: nothing is known against them"])


def _told(package: dict[str, Any], flaw: dict[str, Any]) -> str:
    mended = ", ".join(flaw["fix_versions"]) or "no version"
    return f"{package['name']} {package['version']}: {flaw['id']}, mended in {mended}"


def main() -> int:
    """Run pip-audit and say what it found."""
    run = subprocess.run([sys.executable, *COMMAND], capture_output=True, text=True, check=False)
    try:
        packages = json.loads(run.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        reason = run.stderr.strip().splitlines()[-1:] or ["pip-audit said nothing"]
        print(f"no vulnerability service could be asked: {reason[0]}")
        return 2
    status, lines = verdict(packages)
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
