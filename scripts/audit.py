"""Ask for known vulnerabilities of everything that is installed here (`make audit`).

pip-audit alone ends well when its service knows none of the packages, for instance where only a mirror can be
reached. Here that is an end of its own: status 0 only if every package was looked up and nothing was found, 1 if
something was found, 2 if nothing, or not everything, could be looked up. Some mirrors answer for a project but
not for one release of it; what they say is about the newest release, and is taken if that is the one installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import httpx
from pip._internal.models.index import PyPI

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
AT_ONCE = 8


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
    unknown = [package for package in others if "vulns" not in package]
    if not known:
        return 2, [
            f"no vulnerability service could be asked: nothing was learnt about {len(unknown)} packages"
        ]
    if unknown:
        told = sorted(_named(package) for package in unknown)
        found.append(f"{len(known)} packages looked up, {len(unknown)} not: {', '.join(told)}")
    if any(package["vulns"] for package in known):
        return 1, found
    return (2, found) if unknown else (0, [f"{len(known)} packages looked up: nothing is known against them"])


def learnt(name: str, installed: str, project: dict[str, Any]) -> dict[str, Any]:
    """What an index's document about a project says of the release that is installed, as pip-audit would.

    >>> learnt("a", "1", {"info": {"version": "1"}, "vulnerabilities": []})
    {'name': 'a', 'version': '1', 'vulns': []}
    >>> learnt("a", "1", {"info": {"version": "2"}, "vulnerabilities": []})
    {'name': 'a', 'version': '1', 'newest': '2'}
    """
    package: dict[str, Any] = {"name": name, "version": installed}
    newest = project.get("info", {}).get("version")
    if newest != installed:
        return {**package, "newest": newest}
    if "vulnerabilities" not in project:
        return package
    flaws = [flaw for flaw in project["vulnerabilities"] if not flaw.get("withdrawn")]
    return {**package, "vulns": [{"id": f["id"], "fix_versions": f["fixed_in"]} for f in flaws]}


def _named(package: dict[str, Any]) -> str:
    newest = package.get("newest")
    return f"{package['name']} {package['version']} (newest: {newest})" if newest else str(package["name"])


def _told(package: dict[str, Any], flaw: dict[str, Any]) -> str:
    fixed = ", ".join(flaw["fix_versions"]) or "no version"
    return f"{package['name']} {package['version']}: {flaw['id']}, fixed in {fixed}"


def _asked(package: dict[str, Any]) -> dict[str, Any]:
    """A package that pip-audit learnt nothing about, looked up by the name of its project."""
    name = package["name"]
    if "vulns" in package or name == OURS:
        return package
    try:
        answer = httpx.get(f"{PyPI.pypi_url}/{name}/json", timeout=30, follow_redirects=True)
        return learnt(name, version(name), answer.raise_for_status().json())
    except (httpx.HTTPError, json.JSONDecodeError):
        return package


def main() -> int:
    """Run pip-audit, ask about what it could not learn, and say what was found."""
    run = subprocess.run([sys.executable, *COMMAND], capture_output=True, text=True, check=False)
    try:
        packages = json.loads(run.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        reason = run.stderr.strip().splitlines()[-1:] or ["pip-audit said nothing"]
        print(f"no vulnerability service could be asked: {reason[0]}")
        return 2
    with ThreadPoolExecutor(AT_ONCE) as pool:
        status, lines = verdict(list(pool.map(_asked, packages)))
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
