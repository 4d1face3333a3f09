"""`serve` and `recount`, as a person runs them."""

from __future__ import annotations

import asyncio
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path

import asyncpg
import httpx
import pytest
from click.testing import CliRunner

from curator.test_api import reports
from curator.test_stores import group
from patience import PATIENCE
from postgres_server import PostgresServer
from priorveil.cli import commands
from priorveil.curator.store import FormTally, open_store
from priorveil.errors import install_command
from priorveil.questions.campaign import Campaign
from reserved_ports import free_port
from terminal import done, refused


def filled(url: str, campaign: Campaign, spoil: bool) -> None:
    async def run() -> None:
        async with open_store(url) as store:
            await store.add_campaign(campaign)
            await store.commit([group(campaign, 10)])
            if spoil:
                doubled = {
                    id: FormTally.of(campaign.forms[id], 2 * tally.cells())
                    for id, tally in (await store.tallies(campaign)).items()
                }
                await store.replace_tallies(campaign, doubled)

    asyncio.run(run())


def test_recount_compares_and_repairs(store_url: str, campaign: Campaign) -> None:
    def said(*more: str) -> tuple[str, object]:
        found = CliRunner().invoke(commands, ["recount", "--store", store_url, *more], standalone_mode=False)
        assert found.exception is None
        return found.output, found.return_value

    filled(store_url, campaign, spoil=False)
    assert said() == ("all tallies agree with the reports: 1 campaign, 10 reports\n", 0)
    filled(store_url, campaign, spoil=True)
    output, status = said()
    assert "40 counted, 20 stored" in output and status == 1
    assert said("--repair")[1] == 0
    assert said()[1] == 0


def test_a_repair_leaves_the_tallies_of_published_results(store_url: str, campaign: Campaign) -> None:
    filled(store_url, campaign, spoil=True)

    async def on_store(publish: bool) -> dict[str, FormTally]:
        async with open_store(store_url) as store:
            tallies = await store.tallies(campaign)
            if publish:
                assert await store.publish(campaign, tallies, "{}", "2026-02-03T00:00:00Z", ended=True)
            return tallies

    published = asyncio.run(on_store(publish=True))
    output = done("recount", "--repair", "--store", store_url, status=1).out
    assert "20 counted, 10 stored (not repaired: its results are published" in output
    assert asyncio.run(on_store(publish=False)) == published


def test_serve_shows_its_token_once_and_ends_politely(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from priorveil.cli.serve import serve; serve()"]
    options = ["--store", str(tmp_path / "a.db"), "--port", str(free_port())]
    shown = []
    for more in ([], [], ["--new-token"]):
        process = subprocess.Popen(
            [*command, *options, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None and process.stdout is not None
        assert f"listening on http://127.0.0.1:{options[-1]}/dashboard " in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE)
        shown.append(output)
    assert [text.startswith("admin token (shown once): ") for text in shown] == [True, False, True]
    secret = shown[0].split()[-1].encode()
    assert all(secret not in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


@pytest.mark.parametrize("scheme", ["", "sqlite:///"])
def test_recount_makes_no_store(tmp_path: Path, scheme: str) -> None:
    assert "there is no such file" in refused("recount", "--store", f"{scheme}{tmp_path / 'nope.db'}")
    assert list(tmp_path.iterdir()) == []


def told(command: str, *arguments: str) -> str:
    """What a command says that refuses: one line, and nothing else."""
    return refused(command, *(["--port", "0"] if command == "serve" else []), *arguments)


def test_recount_refuses_a_file_that_no_curator_has_made(tmp_path: Path) -> None:
    empty, foreign = tmp_path / "empty.db", tmp_path / "foreign.db"
    empty.touch()
    with closing(sqlite3.connect(foreign)) as db, db:
        db.execute("CREATE TABLE campaigns (theirs TEXT)")
    before = foreign.read_bytes()
    for file in (empty, foreign):
        assert f"{file.name}': no curator has stored anything here" in told("recount", "--store", str(file))
    assert sorted(tmp_path.iterdir()) == [empty, foreign]
    assert (empty.read_bytes(), foreign.read_bytes()) == (b"", before)


def asked(url: str, *statements: str) -> list[object]:
    """What the database answers to the last statement."""

    async def run() -> list[object]:
        db = await asyncpg.connect(url)
        try:
            for statement in statements[:-1]:
                await db.execute(statement)
            return [row[0] for row in await db.fetch(statements[-1])]
        finally:
            await db.close()

    return asyncio.run(run())


TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


def test_recount_changes_no_schema(postgres: PostgresServer) -> None:
    url = postgres.url(f"empty{free_port()}")
    assert f"store = '{url}': no curator has stored anything here" in told("recount", "--store", url)
    assert f"store = '{url}': no curator has stored anything here" in told("recount", url)
    assert asked(url, TABLES) == []
    old = ("CREATE TABLE schema_version (version integer)", "INSERT INTO schema_version VALUES (1)")
    before = asked(url, *old, TABLES)
    for command in ("recount", "serve"):
        assert "has schema 1, this priorveil uses 3" in told(command, "--store", url)
    assert asked(url, TABLES) == before == ["schema_version"]


@pytest.fixture
def roles(postgres: PostgresServer) -> dict[str, str]:
    """A fresh database's address for its owner, for a role without rights, and for one with a password."""
    owner = postgres.url(f"shared{free_port()}")
    names = {kind: f"{kind}{free_port()}" for kind in ("guest", "guarded")}
    rules = postgres.data / "pg_hba.conf"
    rules.write_text(f"host all {names['guarded']} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    asked(
        owner,
        f"CREATE ROLE {names['guest']} LOGIN",
        f"CREATE ROLE {names['guarded']} LOGIN PASSWORD 'correct'",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",  # as it is from PostgreSQL 15 on
        "SELECT pg_reload_conf()",
    )
    return {"owner": owner, **{kind: owner.replace("postgres@", f"{n}@") for kind, n in names.items()}}


def test_everyday_mistakes_with_a_database_are_one_line(
    roles: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    place, _, name = roles["owner"].rpartition("/")
    mistakes = {
        f"{place}/{name}-gone": f'database "{name}-gone" does not exist: make it with: createdb {name}-gone\n',
        roles["owner"].replace("postgres@", "nobody@"): 'role "nobody" does not exist: give a role that may',
        roles["guarded"]: "give the role's password, better in ~/.pgpass or PGPASSWORD",
        roles["guarded"].replace("@", ":hunter2@"): "password authentication failed",
        roles["guarded"].replace("@", ":correct@"): "no curator has stored anything here",
    }
    for store, said in mistakes.items():
        complaint = told("recount", "--store", store)
        assert said in complaint and "hunter2" not in complaint and "correct" not in complaint
    gone = f"{place}/{name}-gone"
    assert mistakes[gone] in told("serve", "--store", gone)
    complaint = told("serve", "--store", roles["guest"])
    assert "permission denied for schema public: make the role the owner of the database" in complaint


def test_rights_that_are_missing_later_are_one_line_too(roles: dict[str, str], campaign: Campaign) -> None:
    filled(roles["owner"], campaign, spoil=True)
    guest = roles["guest"].partition("://")[2].partition("@")[0]
    store = ("--store", roles["guest"])
    assert "permission denied for table schema_version" in told("recount", *store)
    asked(roles["owner"], f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {guest}", "SELECT 1")
    done("recount", *store, status=1)  # they differ
    assert "permission denied for table tallies" in told("recount", "--repair", *store)
    asked(roles["owner"], f"REVOKE SELECT ON submissions FROM {guest}", "SELECT 1")
    assert "permission denied for table submissions" in told("recount", *store)


def test_a_folder_or_any_other_file_is_no_store(tmp_path: Path) -> None:
    folder, letter = tmp_path / "sub", tmp_path / "letter.txt"
    folder.mkdir()
    letter.write_text("Dear curator, " * 100)
    for place in (".", "..", "/", str(folder), f"{folder}/"):
        assert f"{Path(place)}': this is a folder" in told("recount", "--store", place)
    assert "store = '.': this is a folder: give a file in it" in told("serve", "--store", ".")
    for command in ("serve", "recount"):
        assert f"{letter.name}': this is not an SQLite database" in told(command, "--store", str(letter))
    assert sorted(tmp_path.iterdir()) == [letter, folder] and list(folder.iterdir()) == []


def test_a_port_that_is_taken_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        complaint = refused("serve", "--store", tmp_path / "a.db", "--port", port)
    assert complaint == (
        f"error: port = {port}: cannot listen there on 127.0.0.1 (Address already in use): choose another port\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_an_address_of_nobody_and_a_folder_that_is_not_there_are_said(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert f"there is no folder {missing}" in told("serve", "--store", str(missing / "x.db"))
    complaint = refused("serve", "--store", tmp_path / "x.db", "--host", "192.0.2.1")
    assert "this machine has no such address" in complaint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"short", b"two words of a token", "tök\u2010en".encode() * 9]
)
def test_a_token_that_protects_nothing_is_not_taken(tmp_path: Path, content: bytes) -> None:
    file, store = tmp_path / "token", tmp_path / "a.db"
    file.write_bytes(content)
    complaint = refused("serve", "--store", store, "--token-file", file)
    assert complaint.startswith(f"error: --token-file {file}: ") and "two words" not in complaint
    assert not store.exists()


@pytest.mark.parametrize("shape", ["{0}:hunter2@{1}", "{0}@{1}?password=hunter2"])
def test_the_password_of_a_database_is_not_told(postgres: PostgresServer, shape: str) -> None:
    scheme, _, place = postgres.url(f"told{free_port()}").partition("://")
    store = f"{scheme}://{shape.format(*place.split('@'))}"
    code = "import sys; from priorveil.__main__ import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", "--store", store, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=PATIENCE)
    assert "reports go to postgresql://postgres" in line
    assert "***" in line and "hunter2" not in line + rest


def test_ctrl_c_ends_the_server_quietly(tmp_path: Path) -> None:
    code = "import sys; from priorveil.__main__ import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", "--store", str(tmp_path / "a.db"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    place = process.stderr.readline().partition("listening on ")[2].split()[0]
    page = httpx.get(place, verify=False, trust_env=False, timeout=PATIENCE)
    assert page.status_code == 200 and "html" in page.headers["content-type"]
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert (process.returncode, complaint) == (0, "")


def test_ctrl_c_twice_ends_it_at_once_and_quietly(store_url: str, campaign: Campaign) -> None:
    """Somebody sends all the time, and somebody else never ends: the second ctrl-C does not wait for either."""
    filled(store_url, campaign, spoil=False)
    code = "import sys; from priorveil.__main__ import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", "--store", store_url, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    base = process.stderr.readline().partition("listening on ")[2].split()[0].removesuffix("/dashboard")
    place = f"{base}/v1/campaigns/{campaign.id}/reports"
    acknowledged = threading.Semaphore(0)
    count = [10]

    def send() -> None:
        with (
            httpx.Client(verify=False, trust_env=False, timeout=PATIENCE) as http,
            suppress(httpx.TransportError),
        ):
            while http.post(place, json=reports(campaign, 1)[0]).status_code == 200:
                count[0] += 1
                acknowledged.release()

    sender = threading.Thread(target=send)
    sender.start()
    host, _, port = base.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as endless:
        head = f"POST {place} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
        endless.sendall(f"{head}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n".encode())
        for _ in range(20):
            assert acknowledged.acquire(timeout=PATIENCE)
        process.send_signal(signal.SIGINT)
        with suppress(ConnectionError):
            while True:  # until it has heard
                socket.create_connection((host, int(port)), timeout=PATIENCE).close()
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=PATIENCE)
    sender.join(PATIENCE)
    assert (process.returncode, complaint.split()) == (130, ["stopped"])
    output = done("recount", "--store", store_url).out
    assert output.startswith("all tallies agree with the reports: 1 campaign, ")
    assert int(output.split()[-2].replace(",", "")) in (count[0], count[0] + 5)


@pytest.mark.parametrize("library", ["starlette", "granian"])
def test_serving_without_the_extra_names_it(tmp_path: Path, library: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; from priorveil.__main__ import main; main(sys.argv[1:])"
    told = [sys.executable, "-c", code, "serve", "--store", str(tmp_path / "a.db"), "--port", "0"]
    left = subprocess.run(told, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert left.returncode == 2
    assert left.stderr == f"error: {library} is not installed: {install_command('serve')}\n"


def test_where_files_cannot_be_locked_another_store_is_named(tmp_path: Path) -> None:
    """As on Windows: two curators that share a file would count twice."""
    code = "import sys; from priorveil import atomic_files, cli; "
    code += "atomic_files._LOCKS = False; sys.exit(cli.run(sys.argv[1:]))"
    told = [sys.executable, "-c", code, "serve", "--store", str(tmp_path / "a.db"), "--port", "0"]
    left = subprocess.run(told, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert left.returncode == 2
    assert "cannot be locked on this system" in left.stderr and "PostgreSQL" in left.stderr
    assert len(left.stderr.splitlines()) == 1
