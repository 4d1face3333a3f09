"""`serve` and `recount`, as a person runs them."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from postgres_server import PostgresServer, free_port
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
        assert f"listening on http://127.0.0.1:{options[-1]}/dashboard " in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=40)
        shown.append(output)
    assert [text.startswith("curator token (shown once): ") for text in shown] == [True, False, True]
    secret = shown[0].split()[-1].encode()
    assert all(secret not in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


def ended(*arguments: str) -> tuple[int, str, str]:
    """Status, output and complaints of a command that ends by itself."""
    code = "import sys; from priorveil.cli import main; main(sys.argv[1:])"
    left = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    return left.returncode, left.stdout, left.stderr


@pytest.mark.parametrize("scheme", ["", "sqlite:///"])
def test_recount_makes_no_store(tmp_path: Path, scheme: str) -> None:
    status, output, complaint = ended("recount", "--store", f"{scheme}{tmp_path / 'nope.db'}")
    assert (status, output) == (2, "") and "there is no such file" in complaint
    assert complaint.startswith("error: ") and complaint.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, output, complaint = ended("serve", "--store", str(tmp_path / "a.db"), "--port", port)
    assert (status, output) == (2, "")
    assert complaint == (
        f"error: port = {port}: another program listens there on 127.0.0.1: choose another port\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_an_address_of_nobody_and_a_folder_that_is_not_there_are_said(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    status, output, complaint = ended("serve", "--store", str(missing / "x.db"), "--port", "0")
    assert (status, output) == (2, "") and f"there is no folder {missing}" in complaint
    status, output, complaint = ended("serve", "--store", str(tmp_path / "x.db"), "--host", "192.0.2.1")
    assert (status, output) == (2, "") and "this machine has no such address" in complaint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"short", b"two words of a token", "tök\u2010en".encode() * 9]
)
def test_a_token_that_protects_nothing_is_not_taken(tmp_path: Path, content: bytes) -> None:
    file, store = tmp_path / "token", tmp_path / "a.db"
    file.write_bytes(content)
    status, output, complaint = ended("serve", "--store", str(store), "--token-file", str(file))
    assert (status, output) == (2, "") and not store.exists()
    assert complaint.startswith(f"error: token-file = '{file}': ") and complaint.count("\n") == 1
    assert "two words" not in complaint


@pytest.mark.parametrize("shape", ["{0}:hunter2@{1}", "{0}@{1}?password=hunter2"])
def test_the_password_of_a_database_is_not_told(postgres: PostgresServer, shape: str) -> None:
    scheme, _, place = postgres.url(f"told{free_port()}").partition("://")
    store = f"{scheme}://{shape.format(*place.split('@'))}"
    code = "import sys; from priorveil.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", "--store", store, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=40)
    assert "reports go to postgresql://postgres" in line
    assert "***" in line and "hunter2" not in line + rest


def test_ctrl_c_ends_the_server_quietly(tmp_path: Path) -> None:
    code = "import sys; from priorveil.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", "--store", str(tmp_path / "a.db"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    place = process.stderr.readline().split()[2]
    page = httpx.get(place, verify=False, trust_env=False, timeout=30)
    assert page.status_code == 200 and "html" in page.headers["content-type"]
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=40)
    assert (process.returncode, complaint) == (0, "")


@pytest.mark.parametrize("library", ["starlette", "msgspec", "uvicorn"])
def test_serving_without_the_extra_names_it(tmp_path: Path, library: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; from priorveil.cli import main; main(sys.argv[1:])"
    told = [sys.executable, "-c", code, "serve", "--store", str(tmp_path / "a.db"), "--port", "0"]
    left = subprocess.run(told, capture_output=True, text=True, check=False, timeout=60)
    assert left.returncode == 2
    assert left.stderr == f"error: {library} is not installed: pip install 'priorveil[serve]'\n"


def test_where_files_cannot_be_locked_another_store_is_named(tmp_path: Path) -> None:
    """As on Windows: two curators that share a file would count twice."""
    code = "import sys; sys.modules['fcntl'] = None; from priorveil.cli import main; main(sys.argv[1:])"
    told = [sys.executable, "-c", code, "serve", "--store", str(tmp_path / "a.db"), "--port", "0"]
    left = subprocess.run(told, capture_output=True, text=True, check=False, timeout=60)
    assert left.returncode == 2
    assert left.stderr.startswith("error: this system cannot lock a file") and "PostgreSQL" in left.stderr
    assert len(left.stderr.splitlines()) == 1
