"""Settings: where a value may come from, what is refused, and what is shown. The example file is current."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from msgspec.inspect import FloatType, IntType
from msgspec.structs import fields

from local_server import served
from priorveil.cli import commands
from priorveil.curator import settings
from priorveil.curator.settings import (
    DEFAULTS,
    RequestLimits,
    SettingsSection,
    example,
    read_settings,
    variable,
)
from priorveil.device.wire import JSON
from priorveil.errors import InvalidFile, InvalidInput
from priorveil.questions.campaign import Campaign
from refusals import raises

EXAMPLE = Path(__file__).parents[2] / "deploy" / "priorveil.toml"
SECTIONS = [
    kind for kind in vars(settings).values() if isinstance(kind, type) and issubclass(kind, SettingsSection)
]


def file(folder: Path, text: str) -> Path:
    path = folder / "priorveil.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_option_counts_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    path = file(tmp_path, 'store = "a.db"\n[listen]\nport = 1\nhost = "::1"\n[requests]\nbody = 5\n')
    environment = {"PRIORVEIL_LISTEN_PORT": "2", "PRIORVEIL_REQUESTS_BODY": "6", "PRIORVEIL_STORE": ""}
    read = read_settings(path, environment, {"listen.port": 3, "store": None})
    assert (read.settings.listen.port, read.settings.requests.body) == (3, 6)
    assert (read.settings.listen.host, read.settings.store) == ("::1", "a.db"), "an empty variable is not set"
    assert read.sources == {
        "store": str(path),
        "listen.host": str(path),
        "listen.port": "--port",
        "requests.body": "PRIORVEIL_REQUESTS_BODY",
    }
    assert read.settings.connections == DEFAULTS.connections


def test_without_anything_the_defaults_are_in_force() -> None:
    assert read_settings(None, {}).settings == DEFAULTS


@pytest.mark.parametrize("name", DEFAULTS.values())
def test_every_setting_can_be_set_in_the_file_and_in_the_environment(tmp_path: Path, name: str) -> None:
    """The value is the default, or what a setting without one could be."""
    default = DEFAULTS.values()[name]
    value = "9" if default is None else default
    is_text = not isinstance(settings._rule(settings._KINDS[name]), IntType | FloatType)
    quoted = f'"{value}"' if is_text else value
    section, _, key = name.rpartition(".")
    path = file(tmp_path, (f"[{section}]\n" if section else "") + f"{key} = {quoted}\n")
    in_file, in_environment = read_settings(path, {}), read_settings(None, {variable(name): str(value)})
    assert in_file.settings == in_environment.settings
    assert (in_file.sources, in_environment.sources) == ({name: str(path)}, {name: variable(name)})
    assert default is None or in_file.settings == DEFAULTS


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "priorveil.toml"
    path.write_bytes(b"\xff\xfe")
    with raises(InvalidFile, path=str(path)):
        read_settings(path, {})


@pytest.mark.parametrize("value", ["-1", "0", "4MiB", "1.5", "inf", "\udcff"])
def test_a_variable_with_a_wrong_value_is_refused(value: str) -> None:
    with raises(InvalidInput, argument="requests.body") as refused:
        read_settings(None, {"PRIORVEIL_REQUESTS_BODY": value})
    assert "PRIORVEIL_REQUESTS_BODY" in refused.value.advice


@pytest.mark.parametrize("value", ["-1", "0", "inf", "nan", "true", '"10"', "[10]"])
def test_a_time_must_be_a_number(tmp_path: Path, value: str) -> None:
    with raises(InvalidInput, argument="requests.seconds"):
        read_settings(file(tmp_path, f"[requests]\nseconds = {value}\n"), {})


def test_a_limit_in_python_is_checked_too() -> None:
    with raises(InvalidInput, argument="body", value=0):
        RequestLimits(body=0)


def test_a_misspelt_variable_of_a_section_is_refused_and_one_of_the_platform_is_not() -> None:
    with raises(InvalidInput, argument="PRIORVEIL_REQUESTS_BODDY"):
        read_settings(None, {"PRIORVEIL_REQUESTS_BODDY": "5"})
    platform = {"PRIORVEIL_PORT": "tcp://10.0.0.7:8000", "PRIORVEIL_SERVICE_HOST": "10.0.0.7"}
    assert read_settings(None, platform).settings == DEFAULTS


def test_the_example_file_is_current_and_changes_nothing() -> None:
    assert EXAMPLE.read_text(encoding="utf-8") == example(), "write it again: python scripts/settings.py"
    assert read_settings(EXAMPLE, {}).settings == DEFAULTS


def test_the_example_file_with_every_line_in_force_is_valid(tmp_path: Path) -> None:
    lines = re.sub(r"^# (\w+ = )(?!\()", r"\1", example(), flags=re.MULTILINE)
    path = file(tmp_path, lines)
    read = read_settings(path, {})
    assert read.settings == DEFAULTS
    assert set(read.sources) == {name for name, value in DEFAULTS.values().items() if value is not None}


def test_every_setting_says_what_it_is_about() -> None:
    for kind in SECTIONS:
        for each in fields(kind):
            if each.name not in settings._SECTIONS:
                assert settings._about(each.type).endswith(".")


def test_check_shows_what_is_in_force_and_its_source_but_no_password(tmp_path: Path) -> None:
    path = file(tmp_path, "[requests]\nbody = 5\n")
    environment = {"PRIORVEIL_STORE": "postgresql://me:hunter2@host/db"}
    arguments = ["serve", "--config", str(path), "--check", "--port", "9"]
    shown = CliRunner(env=environment).invoke(commands, arguments, standalone_mode=False)
    assert shown.exception is None and "hunter2" not in shown.output
    assert 'store = "postgresql://me:***@host/db"  # PRIORVEIL_STORE\n' in shown.output
    assert f"body = 5  # {path}\n" in shown.output and "port = 9  # --port\n" in shown.output
    assert "campaign = 67108864  # default\n" in shown.output
    read = tomllib.loads(shown.output)
    assert (read["listen"]["host"], read["listen"]["port"]) == ("127.0.0.1", 9)
    assert list(tmp_path.iterdir()) == [path], "nothing is opened"


def test_serve_keeps_to_its_settings(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIORVEIL_REQUESTS_BODY", "100")
    with served(str(tmp_path / "reports.db"), tmp_path, campaign) as [server]:
        place = f"http://127.0.0.1:{server.port}/v1/campaigns/{campaign.id}/reports"
        sizes = {
            size: httpx.post(place, content=bytes(size), headers={"content-type": JSON})
            for size in (100, 101)
        }
    assert {size: answer.status_code for size, answer in sizes.items()} == {100: 400, 101: 413}
