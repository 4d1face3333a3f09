"""`serve` and `recount`, as a person runs them."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from postgres_server import free_port
from test_stores import group

from priorveil.campaigns import Campaign
from priorveil.curator.store import Store, open_store
from priorveil.serve import recount


def filled(url: str, campaign: Campaign, spoil: bool) -> None:
    async def run() -> None:
        store: Store = open_store(url)
        await store.open()
        await store.add_campaign(campaign)
        await store.commit([group(campaign, 10)])
        if spoil:
            await store.replace_tallies(
                campaign, {p: t + t for p, t in (await store.tallies(campaign)).items()}
            )
        await store.close()

    asyncio.run(run())


def test_recount_compares_and_repairs(store_url: str, campaign: Campaign) -> None:
    def said(*more: str) -> tuple[str, object]:
        found = CliRunner().invoke(recount, ["--store", store_url, *more], standalone_mode=False)
        assert found.exception is None
        return found.output, found.return_value

    filled(store_url, campaign, spoil=False)
    assert said() == ("all tallies agree with the reports\n", 0)
    filled(store_url, campaign, spoil=True)
    output, status = said()
    assert "40 counted, 20 stored" in output and status == 1
    assert said("--repair")[1] == 0
    assert said()[1] == 0


def test_serve_shows_its_token_once_and_ends_politely(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from priorveil.serve import serve; serve()"]
    options = ["--store", str(tmp_path / "a.db"), "--port", str(free_port())]
    shown = []
    for more in ([], [], ["--new-token"]):
        process = subprocess.Popen(
            [*command, *options, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None and process.stdout is not None
        assert "listening on http://127.0.0.1" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=40)
        shown.append(output)
    assert [text.startswith("curator token (shown once): ") for text in shown] == [True, False, True]
    secret = shown[0].split()[-1].encode()
    assert all(secret not in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


@pytest.mark.parametrize("library", ["starlette", "msgspec", "uvicorn"])
def test_serving_without_the_extra_names_it(tmp_path: Path, library: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; from priorveil.cli import main; main(sys.argv[1:])"
    told = [sys.executable, "-c", code, "serve", "--store", str(tmp_path / "a.db"), "--port", "0"]
    left = subprocess.run(told, capture_output=True, text=True, check=False, timeout=60)
    assert left.returncode == 2
    assert left.stderr == f"error: {library} is not installed: pip install 'priorveil[serve]'\n"
