"""The settings of the curator: every limit, with its default, and where a value may come from.

An option of the command counts before an environment variable, that before the file, and that before the default. To
add a setting, add a field to its section: the file, the environment, `priorveil serve --check` and the example in
`deploy/` follow from it.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.inspect import FloatType, IntType, LiteralType, Metadata, UnionType

from priorveil.errors import InvalidFile, InvalidInput, not_text_advice
from priorveil.plans.structure import about

_PREFIX = "PRIORVEIL_"
_EXAMPLE = """\
# Settings of the curator, with their defaults: priorveil serve --config priorveil.toml
# An environment variable counts before this file: PRIORVEIL_REQUESTS_BODY is `body` in [requests]. An option of the
# command counts before both. `priorveil serve --check` shows what is in force, and where each value comes from.
"""


def _read(name: str, kind: Any, value: object, strict: bool = True, source: str = "") -> Any:
    """The value of a setting; one that its type cannot have is refused, with what to do."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter for a variable that is not UTF-8
        raise InvalidInput(name, value, f"{_advice(kind)}{source}") from None


def _advice(kind: Any) -> str:
    """What a setting of this type takes, in words."""
    rule = _rule(kind)
    if isinstance(rule, LiteralType):
        return f"choose {' or '.join(map(str, rule.values))}"
    if not isinstance(rule, IntType | FloatType):
        return "give a text"
    noun = "a whole number" if isinstance(rule, IntType) else "a number"
    if rule.le is None:
        return f"give {noun} of at least {rule.ge}"
    return f"give {noun} from {rule.ge:.12g} to {rule.le:.12g}"


def _rule(kind: Any) -> Any:
    """The type of a setting, as msgspec describes it; that of one that may be left out."""
    rule = msgspec.inspect.type_info(kind)
    while isinstance(rule, Metadata | UnionType):
        rule = rule.type if isinstance(rule, Metadata) else rule.types[0]
    return rule


def _about(kind: Any) -> str:
    """What a setting is about."""
    rule = msgspec.inspect.type_info(kind)
    assert isinstance(rule, Metadata) and rule.extra_json_schema is not None
    return str(rule.extra_json_schema["description"])


class SettingsSection(msgspec.Struct, frozen=True):
    """Settings that belong together. Making one with a wrong value raises `InvalidInput`."""

    def __post_init__(self) -> None:
        for each in msgspec.structs.fields(self):
            _read(each.name, each.type, getattr(self, each.name))


AtLeastOne = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Rate = Annotated[float, Meta(ge=0.001, le=1e9)]
Seconds = Annotated[float, Meta(ge=0.01, le=1e6)]


class Listen(SettingsSection, frozen=True):
    """Where the curator listens."""

    host: Annotated[str, about("The address to listen on.")] = "127.0.0.1"
    port: Annotated[
        Annotated[int, Meta(ge=0, le=65535)], about("The port to listen on; 0 takes a free one.")
    ] = 8000
    trusted_proxies: Annotated[
        str, about("Addresses or networks of proxies that are believed in X-Real-IP, with commas.")
    ] = "127.0.0.1, ::1"


class RequestLimits(SettingsSection, frozen=True):
    """Limits on requests. Requests over a limit are refused, and the response says why."""

    body: Annotated[AtLeastOne, about("Bytes of an upload of reports.")] = 4 << 20
    campaign: Annotated[AtLeastOne, about("Bytes of a campaign.")] = 64 << 20
    seconds: Annotated[Seconds, about("Seconds for all of a body.")] = 10.0
    bodies: Annotated[AtLeastOne, about("Bytes of all large bodies that are being read; then 429.")] = (
        64 << 20
    )
    threads: Annotated[
        AtLeastOne,
        about("Large bodies that are decoded at once; also campaigns that are loaded, and estimates."),
    ] = 2
    waiting: Annotated[AtLeastOne, about("Bytes of reports that wait to be stored; then 429.")] = 16 << 20


class CampaignLimits(SettingsSection, frozen=True):
    """Campaigns that stay in memory, those used last; others are loaded again."""

    loaded: Annotated[AtLeastOne, about("How many campaigns.")] = 1000
    loaded_bytes: Annotated[AtLeastOne, about("Bytes that they take, about, with their tables.")] = 256 << 20


class AttemptLimits(SettingsSection, frozen=True):
    """Limits on wrong tokens. Beyond them a token is refused with 429, without looking at it."""

    burst: Annotated[AtLeastOne, about("Wrong tokens of one address at once.")] = 10
    rate: Annotated[Rate, about("Further ones of one address in a second.")] = 1.0


class ConnectionLimits(SettingsSection, frozen=True):
    """Limits on connections."""

    header_seconds: Annotated[
        Seconds, about("Seconds for the headers of a request; an idle connection is closed after it.")
    ] = 10.0
    header_bytes: Annotated[Annotated[int, Meta(ge=8192)], about("Bytes of the headers of a request.")] = (
        64 << 10
    )
    send_seconds: Annotated[Seconds, about("Seconds in which a reader must take something.")] = 30.0
    connections: Annotated[AtLeastOne, about("Connections at once; further ones wait.")] = 4096
    stop_seconds: Annotated[Seconds, about("Seconds to finish requests at the end.")] = 30.0


class DatabaseLimits(SettingsSection, frozen=True):
    """Limits on the database."""

    connections: Annotated[
        AtLeastOne, about("Connections to PostgreSQL, besides the one that stores reports.")
    ] = 4
    lock_seconds: Annotated[Seconds, about("Seconds to wait for a lock that another program holds.")] = 5.0
    statement_seconds: Annotated[Seconds, about("Seconds for one statement, on PostgreSQL.")] = 30.0
    retry_seconds: Annotated[
        Seconds, about("Seconds in which a lost connection to PostgreSQL may come back; then 503.")
    ] = 10.0
    check_seconds: Annotated[Seconds, about("Seconds for which /readyz repeats its last result.")] = 5.0


class LogSettings(SettingsSection, frozen=True):
    """What is logged, to standard error."""

    level: Annotated[
        Literal["info", "warning", "error"], about("The least level that is logged: info, warning or error.")
    ] = "info"
    format: Annotated[Literal["plain", "json"], about("Lines of text (plain), or JSON objects (json).")] = (
        "plain"
    )
    repeat_seconds: Annotated[
        Seconds, about("Seconds before a failure of the same kind is logged again.")
    ] = 60.0


class MetricsSettings(SettingsSection, frozen=True):
    """Where the metrics for Prometheus are."""

    port: Annotated[
        Port | None,
        about("A port of their own for the metrics; where it is not set, /metrics is beside the API."),
    ] = None
    host: Annotated[str, about("The address of that port.")] = "127.0.0.1"


class SubmissionLimits(SettingsSection, frozen=True):
    """Limits on what people send without a token: reports, withdrawals, questions about codes. Beyond them: 429."""

    burst: Annotated[AtLeastOne, about("Submissions of one address at once. This machine has no limit.")] = (
        120
    )
    rate: Annotated[Rate, about("Further ones of one address in a second.")] = 2.0
    total_burst: Annotated[AtLeastOne, about("Submissions of all addresses at once.")] = 100_000
    total_rate: Annotated[Rate, about("Further ones of all addresses in a second.")] = 10_000.0


class SurveyLimits(SettingsSection, frozen=True):
    """Limits on surveys that are designed for the dashboard: one at a time, in a process of its own."""

    body: Annotated[AtLeastOne, about("Bytes of a survey.")] = 4 << 20
    seconds: Annotated[
        Annotated[float, Meta(ge=1, le=1e6)], about("Seconds to design one; a proxy must wait for longer.")
    ] = 50.0
    memory: Annotated[AtLeastOne, about("Bytes of memory for it.")] = 1 << 30
    nice: Annotated[
        Annotated[int, Meta(ge=0, le=19)], about("How far it stands back for other processes, from 0 to 19.")
    ] = 10
    waiting: Annotated[Annotated[int, Meta(ge=0)], about("Surveys that wait for their turn; then 429.")] = 4


class TotalsSettings(SettingsSection, frozen=True):
    """What published results say that their totals tell about one person."""

    colluding: Annotated[
        Annotated[float, Meta(ge=0, le=0.99)],
        about("The share of the people who may let others see what they sent, and are not counted."),
    ] = 0.1


class Settings(SettingsSection, frozen=True):
    """All settings: some by themselves, the others in sections."""

    store: Annotated[str, about("An SQLite file, or postgresql://user@host/database.")] = "priorveil.db"
    token_file: Annotated[str | None, about("A file with an admin token.")] = None
    listen: Listen = msgspec.field(default_factory=Listen)
    requests: RequestLimits = msgspec.field(default_factory=RequestLimits)
    connections: ConnectionLimits = msgspec.field(default_factory=ConnectionLimits)
    database: DatabaseLimits = msgspec.field(default_factory=DatabaseLimits)
    log: LogSettings = msgspec.field(default_factory=LogSettings)
    metrics: MetricsSettings = msgspec.field(default_factory=MetricsSettings)
    campaigns: CampaignLimits = msgspec.field(default_factory=CampaignLimits)
    attempts: AttemptLimits = msgspec.field(default_factory=AttemptLimits)
    submissions: SubmissionLimits = msgspec.field(default_factory=SubmissionLimits)
    surveys: SurveyLimits = msgspec.field(default_factory=SurveyLimits)
    totals: TotalsSettings = msgspec.field(default_factory=TotalsSettings)

    def values(self) -> dict[str, Any]:
        """Every setting by its full name, such as `requests.body`."""
        return {name: value for name, value, _ in _walk(self)}


def _walk(section: SettingsSection, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The full name, the value and the type of every setting."""
    for each in msgspec.structs.fields(section):
        value, name = getattr(section, each.name), f"{prefix}{each.name}"
        if isinstance(value, SettingsSection):
            yield from _walk(value, f"{name}.")
        else:
            yield name, value, each.type


DEFAULTS = Settings()
_KINDS = {name: kind for name, _, kind in _walk(DEFAULTS)}
_SECTIONS = {
    name for name in DEFAULTS.__struct_fields__ if isinstance(getattr(DEFAULTS, name), SettingsSection)
}


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
    found = [(name, value, str(file), True) for name, value in (_read_file(file) if file else {}).items()]
    found += [(name, text, variable(name), False) for name, text in _read_environment(environment).items()]
    for name, value in (options or {}).items():
        if value is not None:
            found.append((name, value, "--" + name.rpartition(".")[2].replace("_", "-"), True))
    document: dict[str, Any] = {}
    for name, value, source, strict in found:
        section, _, key = name.rpartition(".")
        part = document.setdefault(section, {}) if section else document
        part[key] = _read(name, _KINDS[name], value, strict, f" (it is set by {source})")
    sources = {name: source for name, _, source, _ in found}
    return Configuration(msgspec.convert(document, Settings), sources)


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
        if name not in _KINDS:
            raise InvalidFile(file, _unknown_setting(name, list(_KINDS)))
    return values


def _read_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in the environment; an empty variable counts as not set.

    A variable that begins like those of a section must be one of them. Others may belong to other commands, or to the
    platform: Kubernetes sets PRIORVEIL_PORT for a service of that name.
    """
    names = {variable(name): name for name in _KINDS}
    for key in environment:
        section = key.removeprefix(_PREFIX).partition("_")[0].lower()
        if key.startswith(_PREFIX) and section in _SECTIONS and key not in names:
            raise InvalidInput(key, environment[key], _unknown_setting(key, list(names)))
    return {name: environment[key] for key, name in names.items() if environment.get(key, "")}


def _unknown_setting(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    advice = f"did you mean {near[0]}?" if near else "`priorveil serve --check` lists all settings"
    return f"there is no setting {name}: {advice}"


# -- as TOML ---------------------------------------------------------------------------------------------------


def example() -> str:
    """A file with every setting as a comment, with its default: `deploy/priorveil.toml`."""
    lines = {
        name: f"\n# {_about(kind)}\n# {_toml_line(name, value).removeprefix('# ')}"
        for name, value, kind in _walk(DEFAULTS)
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
