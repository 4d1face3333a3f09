"""Requests to a curator's API by commands that manage it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from priorveil.cli import options
from priorveil.errors import needs_extra

_SECONDS = 60.0


@dataclass(frozen=True)
class CuratorApi:
    """The address of a curator, and the secret of the token that opens it."""

    server: str
    secret: str

    def request(self, method: str, *path: str, document: object = None) -> Any:
        """The content of the response, None if it has none. An error of the curator is an error of the command."""
        with needs_extra("client"):
            import httpx

            from priorveil.device.transport import certificate_problem

        url = "/".join([self.server.rstrip("/"), *(quote(part, safe="") for part in path)])
        header = {"authorization": f"Bearer {self.secret}"}
        try:
            response = httpx.request(method, url, json=document, headers=header, timeout=_SECONDS)
        except (httpx.RequestError, httpx.InvalidURL, UnicodeError) as error:
            advice = certificate_problem(error) or f"{type(error).__name__}; check --server, and that it runs"
            raise click.ClickException(
                f"the curator at {self.server} could not be reached: {advice}"
            ) from error
        try:
            content = response.json() if response.content else None
        except ValueError:
            content = None
        if not response.is_success:
            detail = content.get("detail") if isinstance(content, dict) else None
            raise click.ClickException(
                f"the curator at {self.server} answered {response.status_code}: {detail}"
            )
        return content


def campaign_id(given: str) -> str:
    """The id of a campaign, given as a file or as the id itself."""
    from priorveil.plans.structure import CONTENT_ID
    from priorveil.questions.campaign import Campaign

    if re.fullmatch(CONTENT_ID, given):
        return given
    if not Path(given).is_file():
        advice = "give the file of a campaign, or its id of 64 hexadecimal digits"
        raise click.UsageError(f"CAMPAIGN {given}: there is no such file: {advice}")
    return Campaign.from_json(Path(given).read_bytes()).id


def with_curator(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options `--server` and `--token-file`, and pass it a `CuratorApi` as its first argument."""

    @click.option(
        "--server", default="http://127.0.0.1:8000", envvar="PRIORVEIL_SERVER", help="The curator's address."
    )
    @click.option(
        "--token-file",
        type=options.INPUT_FILE,
        envvar="PRIORVEIL_TOKEN_FILE",
        help="A file with your token. Without it, the token is in PRIORVEIL_TOKEN.",
    )
    @wraps(command)
    def with_api(server: str, token_file: Path | None, **others: Any) -> Any:
        secret = options.read_token(token_file) if token_file else os.environ.get("PRIORVEIL_TOKEN")
        if "://" not in server:
            advice = f"give it with http:// or https://, such as http://{server}"
            raise click.UsageError(f"--server {server} is not a whole address: {advice}")
        if not secret:
            raise click.UsageError("this needs your token: set PRIORVEIL_TOKEN, or give --token-file")
        return command(CuratorApi(server, secret), **others)

    return with_api
