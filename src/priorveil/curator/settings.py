"""The settings of the curator: every limit, with its default, and where a value may come from.

An option of the command counts before an environment variable, that before the file, and that before the default. To
add a setting, add a field to its section: the file, the environment, `priorveil serve --check` and the example in
`deploy/` follow from it.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from priorveil.errors import InvalidFile, InvalidInput, not_text_advice

_PREFIX = "PRIORVEIL_"
_KINDS = {str: "a text", int: "a whole number", float: "a number"}
_EXAMPLE = """\
# Settings of the curator, with their defaults: priorveil serve --config priorveil.toml
# An environment variable counts before this file: PRIORVEIL_REQUESTS_BODY is `body` in [requests]. An option of the
# command counts before both. `priorveil serve --check` shows what is in force, and where each value comes from.
"""


@dataclass(frozen=True)
class _Rule:
    """What a setting is about, and which values it may have."""

    about: str
    kind: type
    least: float
    most: float
    choices: tuple[str, ...]
    optional: bool

    def read(self, text: str) -> Any:
        """The value that an environment variable holds; a text that is no number is returned as it is."""
        try:
            return self.kind(text)
        except ValueError:
            return text

    def problem(self, value: object) -> str | None:
        """What to do about a value that the setting cannot have, or None."""
        if value is None and self.optional:
            return None
        allowed = (int, float) if self.kind is float else self.kind
        fits = isinstance(value, allowed) and not isinstance(value, bool)
        if fits and isinstance(value, int | float):
            fits = math.isfinite(value) and self.least <= value <= self.most
        if not fits:
            return f"give {_KINDS[self.kind]}{self._bounds()}"
        if self.choices and value not in self.choices:
            return f"choose {' or '.join(self.choices)}"
        return None

    def _bounds(self) -> str:
        """The bounds of a number, in words."""
        if self.most < math.inf:
            return f" from {self.least:g} to {self.most:g}"
        return f" of at least {self.least:g}" if self.least > -math.inf else ""


def setting(
    default: Any,
    about: str,
    *,
    kind: type | None = None,
    least: float = -math.inf,
    most: float = math.inf,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field of a section. `kind` is needed where the default is None, which means that nothing is set."""
    rule = _Rule(about, kind or type(default), least, most, choices, optional=default is None)
    return field(default=default, metadata={"rule": rule})


class Section:
    """Settings that belong together. Making one with a wrong value raises `InvalidInput`."""

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            value, rule = getattr(self, each.name), each.metadata.get("rule")
            if rule and (advice := rule.problem(value)):
                raise InvalidInput(each.name, value, advice)


@dataclass(frozen=True)
class Listen(Section):
    """Where the curator listens."""

    host: str = setting("127.0.0.1", "The address to listen on.")
    port: int = setting(8000, "The port to listen on; 0 takes a free one.", least=0, most=65535)
    trusted_proxies: str = setting(
        "127.0.0.1, ::1", "Addresses or networks of proxies that are believed in X-Real-IP, with commas."
    )


@dataclass(frozen=True)
class RequestLimits(Section):
    """Limits on requests. What is over a limit is refused, and the response says why."""

    body: int = setting(4 << 20, "Bytes of an upload of reports.", least=1)
    campaign: int = setting(64 << 20, "Bytes of a campaign.", least=1)
    seconds: float = setting(10.0, "Seconds for all of a body.", least=0.01)
    bodies: int = setting(64 << 20, "Bytes of all large bodies that are being read; then 429.", least=1)
    threads: int = setting(
        2, "Large bodies that are decoded at once; also campaigns that are loaded, and estimates.", least=1
    )
    waiting: int = setting(16 << 20, "Bytes of reports that wait to be stored; then 429.", least=1)


@dataclass(frozen=True)
class CampaignLimits(Section):
    """Campaigns that stay in memory, those used last; others are loaded again."""

    loaded: int = setting(1000, "How many campaigns.", least=1)
    loaded_bytes: int = setting(256 << 20, "Bytes that they take, about, with their tables.", least=1)


@dataclass(frozen=True)
class AttemptLimits(Section):
    """Limits on wrong tokens. Beyond them a token is refused with 429, without looking at it."""

    burst: int = setting(10, "Wrong tokens of one address at once.", least=1)
    rate: float = setting(1.0, "Further ones of one address in a second.", least=0.001)


@dataclass(frozen=True)
class ConnectionLimits(Section):
    """Limits on connections."""

    header_seconds: float = setting(
        10.0, "Seconds for the headers of a request; an idle connection is closed after it.", least=0.01
    )
    header_bytes: int = setting(64 << 10, "Bytes of the headers of a request.", least=8192)
    send_seconds: float = setting(
        30.0, "Seconds in which a reader must take something.", least=0.01, most=1e6
    )
    connections: int = setting(4096, "Connections at once; further ones wait.", least=1)
    stop_seconds: float = setting(30.0, "Seconds to finish requests at the end.", least=0.01)


@dataclass(frozen=True)
class DatabaseLimits(Section):
    """Limits on the database."""

    connections: int = setting(4, "Connections to PostgreSQL, besides the one that stores reports.", least=1)
    lock_seconds: float = setting(5.0, "Seconds to wait for a lock that another program holds.", least=0.01)
    statement_seconds: float = setting(30.0, "Seconds for one statement, on PostgreSQL.", least=0.01)
    retry_seconds: float = setting(
        10.0, "Seconds in which a lost connection to PostgreSQL may come back; then 503.", least=0.01
    )
    check_seconds: float = setting(5.0, "Seconds for which /readyz repeats its last result.", least=0.01)


@dataclass(frozen=True)
class LogSettings(Section):
    """What is logged, to standard error."""

    level: str = setting(
        "info",
        "The least level that is logged: info, warning or error.",
        choices=("info", "warning", "error"),
    )
    format: str = setting(
        "plain", "Lines of text (plain), or JSON objects (json).", choices=("plain", "json")
    )
    repeat_seconds: float = setting(
        60.0, "Seconds before a failure of the same kind is logged again.", least=0.01
    )


@dataclass(frozen=True)
class MetricsSettings(Section):
    """Where the metrics for Prometheus are."""

    port: int | None = setting(
        None,
        "A port of their own for the metrics; where it is not set, /metrics is beside the API.",
        kind=int,
        least=1,
        most=65535,
    )
    host: str = setting("127.0.0.1", "The address of that port.")


@dataclass(frozen=True)
class SubmissionLimits(Section):
    """Limits on what people send without a token: reports, withdrawals, questions about codes. Beyond them: 429."""

    burst: int = setting(120, "Submissions of one address at once. This machine has no limit.", least=1)
    rate: float = setting(2.0, "Further ones of one address in a second.", least=0.001)
    total_burst: int = setting(100_000, "Submissions of all addresses at once.", least=1)
    total_rate: float = setting(10_000.0, "Further ones of all addresses in a second.", least=0.001)


@dataclass(frozen=True)
class SurveyLimits(Section):
    """Limits on surveys that are designed for the dashboard: one at a time, in a process of its own."""

    body: int = setting(4 << 20, "Bytes of a survey.", least=1)
    seconds: float = setting(50.0, "Seconds to design one; a proxy must wait for longer.", least=1)
    memory: int = setting(1 << 30, "Bytes of memory for it.", least=1)
    nice: int = setting(10, "How far it stands back for other processes, from 0 to 19.", least=0, most=19)
    waiting: int = setting(4, "Surveys that wait for their turn; then 429.", least=0)


@dataclass(frozen=True)
class Settings(Section):
    """All settings: some by themselves, the others in sections."""

    store: str = setting("priorveil.db", "An SQLite file, or postgresql://user@host/database.")
    token_file: str | None = setting(None, "A file with an admin token.", kind=str)
    listen: Listen = field(default_factory=Listen)
    requests: RequestLimits = field(default_factory=RequestLimits)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    database: DatabaseLimits = field(default_factory=DatabaseLimits)
    log: LogSettings = field(default_factory=LogSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    campaigns: CampaignLimits = field(default_factory=CampaignLimits)
    attempts: AttemptLimits = field(default_factory=AttemptLimits)
    submissions: SubmissionLimits = field(default_factory=SubmissionLimits)
    surveys: SurveyLimits = field(default_factory=SurveyLimits)

    def values(self) -> dict[str, Any]:
        """Every setting by its full name, such as `requests.body`."""
        return {name: value for name, value, _ in _walk(self)}


def _walk(section: Section, prefix: str = "") -> Iterator[tuple[str, Any, _Rule]]:
    """The full name, the value and the rule of every setting."""
    for each in fields(section):  # type: ignore[arg-type]
        value, name = getattr(section, each.name), f"{prefix}{each.name}"
        if isinstance(value, Section):
            yield from _walk(value, f"{name}.")
        else:
            yield name, value, each.metadata["rule"]


DEFAULTS = Settings()
_RULES = {name: rule for name, _, rule in _walk(DEFAULTS)}
_SECTIONS = {each.name for each in fields(DEFAULTS) if isinstance(getattr(DEFAULTS, each.name), Section)}


def variable(name: str) -> str:
    """The environment variable of a setting.

    >>> variable("requests.body")
    'PRIORVEIL_REQUESTS_BODY'
    """
    return _PREFIX + name.upper().replace(".", "_")


@dataclass(frozen=True)
class Configuration:
    """Settings, and where each that is not a default came from, by its full name."""

    settings: Settings
    sources: Mapping[str, str]

    def __str__(self) -> str:
        """What is in force, as TOML with the source of each value; a password is hidden."""
        values = {**self.settings.values(), "store": hide_password(self.settings.store)}
        lines = {
            name: f"{_toml_line(name, value)}  # {self.sources.get(name, 'default')}"
            for name, value in values.items()
        }
        return _toml(lines)


def read_settings(
    file: Path | None, environment: Mapping[str, str], options: Mapping[str, Any] | None = None
) -> Configuration:
    """The settings from a file, from the environment and from options, which are None where they are not given.

    Raises `InvalidFile` or `InvalidInput` for a setting that does not exist or cannot have its value.
    """
    values: dict[str, tuple[Any, str]] = {}
    if file is not None:
        values |= {name: (value, str(file)) for name, value in _read_file(file).items()}
    values |= {name: (value, variable(name)) for name, value in _read_environment(environment).items()}
    for name, value in (options or {}).items():
        if value is not None:
            values[name] = (value, "--" + name.rpartition(".")[2].replace("_", "-"))
    for name, (value, source) in values.items():
        if advice := _RULES[name].problem(value):
            raise InvalidInput(name, value, f"{advice} (it is set by {source})")
    settings = DEFAULTS
    for name, (value, _) in values.items():
        settings = _replace(settings, name, value)
    return Configuration(settings, {name: source for name, (_, source) in values.items()})


def _replace(settings: Settings, name: str, value: Any) -> Settings:
    section, _, key = name.rpartition(".")
    if section:
        inner: Any = getattr(settings, section)
        return _replace(settings, section, dataclasses.replace(inner, **{key: value}))
    return dataclasses.replace(settings, **{key: value})


def _read_file(file: Path) -> dict[str, Any]:
    """The settings in a TOML file by their full names."""
    content = file.read_bytes()
    try:
        document = tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise InvalidFile(file, not_text_advice(content)) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidFile(file, f"this is not TOML: {error}") from None
    values: dict[str, Any] = {}
    for key, value in document.items():
        if key not in _SECTIONS:
            values[key] = value
        elif isinstance(value, dict):
            values |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            raise InvalidFile(file, f"{key}: this is a section: write [{key}] on a line of its own")
    for name in values:
        if name not in _RULES:
            raise InvalidFile(file, _unknown(name, list(_RULES)))
    return values


def _read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings in the environment; an empty variable counts as not set.

    A variable that begins like those of a section must be one of them. Others may belong to other commands, or to the
    platform: Kubernetes sets PRIORVEIL_PORT for a service of that name.
    """
    names = {variable(name): name for name in _RULES}
    for key in environment:
        section = key.removeprefix(_PREFIX).partition("_")[0].lower()
        if key.startswith(_PREFIX) and section in _SECTIONS and key not in names:
            raise InvalidInput(key, environment[key], _unknown(key, list(names)))
    return {
        name: _RULES[name].read(environment[key]) for key, name in names.items() if environment.get(key, "")
    }


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    advice = f"did you mean {near[0]}?" if near else "`priorveil serve --check` lists all settings"
    return f"there is no setting {name}: {advice}"


# -- as TOML ---------------------------------------------------------------------------------------------------


def example() -> str:
    """A file with every setting as a comment, with its default: `deploy/priorveil.toml`."""
    lines = {
        name: f"\n# {rule.about}\n# {_toml_line(name, value).removeprefix('# ')}"
        for name, value, rule in _walk(DEFAULTS)
    }
    return _EXAMPLE + _toml(lines, about_sections=True)


def _toml(lines: Mapping[str, str], about_sections: bool = False) -> str:
    """Lines for settings, each under the heading of its section."""
    parts, current = [], ""
    for name, line in lines.items():
        section = name.rpartition(".")[0]
        if section != current:
            about = (type(getattr(DEFAULTS, section)).__doc__ or "").strip()
            parts.append(f"\n[{section}]" + (f"  # {about}" if about_sections else ""))
            current = section
        parts.append(line)
    return "\n".join([*parts, ""])


def _toml_line(name: str, value: object) -> str:
    """A setting as TOML; as a comment where nothing is set, because TOML cannot say so."""
    key = name.rpartition(".")[2]
    if value is None:
        return f"# {key} = (not set)"
    return (
        f"{key} = {json.dumps(value, ensure_ascii=False)}"  # texts and numbers look alike in JSON and in TOML
    )


def hide_password(url: str) -> str:
    """A store's address without its password, for messages and logs.

    >>> hide_password("postgresql://me:secret@host/db")
    'postgresql://me:***@host/db'
    >>> hide_password("postgresql:///db?password=secret&sslpassword=secret")
    'postgresql:///db?password=***&sslpassword=***'
    """
    before = re.sub(r"^(\w+://[^/:@]*):.*@", r"\1:***@", url)
    return re.sub(r"(?<=[?&])((?:ssl)?password=)[^&]*", r"\1***", before)
