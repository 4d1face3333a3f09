"""What the deployment page and `deploy/` say, done for real: the proxy, the unit, the container file, backups."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import click
import httpx
import pytest
import yaml

from curator.test_api import reports
from curator.test_full_disk import Sender, stored_ids
from local_server import Server, served
from patience import PATIENCE, wait_until
from postgres_server import PostgresServer
from priorveil.curator.settings import read_settings
from priorveil.questions.campaign import Campaign
from reserved_ports import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"


def needed(name: str) -> str:
    """A program, or a skipped test that says which is missing."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(name, path=places)
    if found is None:
        pytest.skip(f"{name} is not installed here")
    return found


# -- nginx ---------------------------------------------------------------------------------------------------


def proxy_configuration(folder: Path, curator: int, plain: int, secure: int) -> Path:
    """The shipped file, inside http { }, with ports and certificates of our own."""
    shipped = (DEPLOY / "nginx.conf").read_text()
    for old, new in {
        "127.0.0.1:8000": f"127.0.0.1:{curator}",
        "listen 80": f"listen 127.0.0.1:{plain}",
        "listen 443": f"listen 127.0.0.1:{secure}",
        "/etc/letsencrypt/live/survey.example.org": str(folder),
        "/var/log/nginx": str(folder),
    }.items():
        assert old in shipped
        shipped = shipped.replace(old, new)
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""  # its folders are ours
    path = folder / "nginx.conf"
    path.write_text(
        f"{user}pid {folder}/pid;\nworker_processes 1;\ndaemon off;\nerror_log {folder}/error.log crit;\n"
        f"events {{ worker_connections 512; }}\nhttp {{\naccess_log {folder}/access.log;\n{places}{shipped}}}\n"
    )
    return path


def certificate(folder: Path) -> None:
    subject = ["-subj", "/CN=survey.example.org", "-addext", "subjectAltName=DNS:survey.example.org"]
    files = ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    command = [needed("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subprocess.run([*command, "-nodes", "-days", "2", *subject, *files], check=True, capture_output=True)


@contextmanager
def proxied(folder: Path, curator: int) -> Iterator[tuple[int, int]]:
    """nginx in front of a port: its own ports, without and with TLS."""
    nginx = needed("nginx")
    certificate(folder)
    plain, secure = free_port(), free_port()
    path = proxy_configuration(folder, curator, plain, secure)
    tested = subprocess.run([nginx, "-t", "-p", str(folder), "-c", str(path)], capture_output=True, text=True)
    assert tested.returncode == 0, tested.stderr
    process = subprocess.Popen(
        [nginx, "-p", str(folder), "-c", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with stopping(process, secure):
        yield plain, secure


@contextmanager
def caddied(folder: Path, curator: int) -> Iterator[tuple[int, int]]:
    """Caddy in front of a port, with the shipped file and a certificate of our own."""
    caddy = needed("caddy")
    certificate(folder)
    plain, secure = free_port(), free_port()
    shipped = (DEPLOY / "Caddyfile").read_text().replace("127.0.0.1:8000", f"127.0.0.1:{curator}")
    head, _, rest = shipped.partition("survey.example.org {\n")
    head = head.replace("{\n", f"{{\n\tadmin off\n\thttp_port {plain}\n\thttps_port {secure}\n", 1)
    certificates = f"\ttls {folder}/fullchain.pem {folder}/privkey.pem\n"
    (folder / "Caddyfile").write_text(f"{head}survey.example.org {{\n{certificates}{rest}")
    command = [caddy, "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    home = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "caddy.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=home)
    with stopping(process, secure):
        yield plain, secure


def listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def stopping(process: subprocess.Popen[bytes], port: int) -> Iterator[None]:
    """Wait until it listens; end it afterwards."""
    try:
        wait_until(lambda: listens(port), "the proxy listens")
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


@contextmanager
def visitor(folder: Path) -> Iterator[httpx.Client]:
    """Somebody who trusts the certificate and says who they are."""
    trust = ssl.create_default_context(cafile=str(folder / "fullchain.pem"))
    who = {"host": "survey.example.org", "user-agent": "Mozilla/5.0", "x-forwarded-for": "1.2.3.4"}
    with httpx.Client(verify=trust, headers=who, timeout=PATIENCE) as http:
        yield http


def named(port: int, path: str) -> dict[str, object]:
    """A request for the name, sent to this machine."""
    return {
        "url": f"https://127.0.0.1:{port}{path}",
        "extensions": {"sni_hostname": "survey.example.org"},
    }


def test_a_curator_behind_nginx(tmp_path: Path, campaign: Campaign) -> None:
    with (
        served(str(tmp_path / "a.db"), tmp_path, campaign) as [server],
        proxied(tmp_path, server.port) as (plain, secure),
        visitor(tmp_path) as http,
    ):
        where = f"/v1/campaigns/{campaign.id}"
        page = http.get(**named(secure, f"/answer/{campaign.id}"))  # type: ignore[arg-type]
        assert page.status_code == 200 and "<html" in page.text
        assert (
            page.headers["strict-transport-security"]
            and "script-src 'self'" in page.headers["content-security-policy"]
        )
        assert http.get(**named(secure, where)).text == campaign.to_json()  # type: ignore[arg-type]
        token = {"authorization": "Bearer a-secret-of-the-tests"}
        batch = {"reports": reports(campaign, 50)}
        sent = http.post(**named(secure, f"{where}/reports"), json=batch, headers=token)  # type: ignore[arg-type]
        assert sent.json() == {"accepted": 50, "refused": []}
        found = http.get(**named(secure, f"{where}/counters"), headers=token)  # type: ignore[arg-type]
        assert found.json()["reports"] == {"everyone": 50}
        long = http.post(**named(secure, f"{where}/reports"), content=bytes(5 << 20))  # type: ignore[arg-type]
        assert long.status_code == 413
        named_host = {"host": "survey.example.org"}
        moved = httpx.get(f"http://127.0.0.1:{plain}/x?y=1", headers=named_host, timeout=PATIENCE)
        assert (moved.status_code, moved.headers["location"]) == (301, "https://survey.example.org/x?y=1")
        many = [http.get(**named(secure, "/healthz")).status_code for _ in range(150)]  # type: ignore[arg-type]
        assert set(many) == {200, 429}, "the rate is limited by address"
        server.stop()
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert "Mozilla" not in logs and "1.2.3.4" not in logs and "127.0.0.1" not in logs


@contextmanager
def ear() -> Iterator[tuple[int, list[bytes]]]:
    """A port behind a proxy, and the heads of all requests that come there."""
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/readyz" not in head:  # the proxy's own question
            heard.append(head)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(hear, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1], heard
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        server.close()
        loop.close()


@pytest.mark.parametrize("proxy", [proxied, caddied])
def test_proxies_pass_nothing_on_that_tells_people_apart(tmp_path: Path, proxy: Any) -> None:
    """What arrives behind it, on every kind of address."""
    with ear() as (port, heard), proxy(tmp_path, port) as (_, secure), visitor(tmp_path) as http:
        for path in ("/", "/v1/campaigns", "/metrics"):
            told = {"x-real-ip": "1.2.3.4", "forwarded": "for=1.2.3.4"}
            assert http.get(**named(secure, path), headers=told).status_code == 200  # type: ignore[arg-type]
    assert len(heard) == 3
    for head in heard:
        assert b"Mozilla" not in head and b"1.2.3.4" not in head and b"127.0.0.1" not in head, head
        assert b"host: survey.example.org" in head.lower()


@pytest.mark.parametrize("proxy", [proxied, caddied])
def test_proxies_name_the_address_of_who_sends_a_token(tmp_path: Path, proxy: Any) -> None:
    with ear() as (port, heard), proxy(tmp_path, port) as (_, secure), visitor(tmp_path) as http:
        told = {"authorization": "Bearer x", "x-real-ip": "1.2.3.4"}
        assert http.get(**named(secure, "/v1/campaigns"), headers=told).status_code == 200  # type: ignore[arg-type]
    [head] = heard
    assert b"x-real-ip: 127.0.0.1" in head.lower() and b"1.2.3.4" not in head


@pytest.mark.parametrize("path", ["/v1/campaigns", "/v1/campaigns/x/estimates", "/v1/tokens"])
def test_few_of_many_wrong_tokens_come_through_nginx(tmp_path: Path, path: str) -> None:
    with ear() as (port, heard), proxied(tmp_path, port) as (_, secure), visitor(tmp_path) as http:
        wrong = {"authorization": "Bearer wrong"}
        tried = [http.get(**named(secure, path), headers=wrong).status_code for _ in range(400)]  # type: ignore[arg-type]
    assert set(tried) == {200, 429}
    assert 50 <= len(heard) == tried.count(200) < 300


@pytest.mark.parametrize("proxy", [proxied, caddied])
def test_proxies_pass_bodies_on_and_spool_none(tmp_path: Path, proxy: Any) -> None:
    """The curator sees the token while most of the body is still to come."""
    head = b"POST /v1/campaigns HTTP/1.1\r\nhost: survey.example.org\r\nauthorization: Bearer wrong\r\n"
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    with ear() as (port, heard), proxy(tmp_path, port) as (_, secure), ExitStack() as lines:
        for count in range(1, 9):
            line = lines.enter_context(socket.create_connection(("127.0.0.1", secure), PATIENCE))
            secured = lines.enter_context(trust.wrap_socket(line, server_hostname="survey.example.org"))
            secured.sendall(head + b"content-length: 60000000\r\n\r\n" + bytes(1 << 15))
            wait_until(lambda count=count: len(heard) >= count, f"{count} requests are passed on")  # type: ignore[misc]
            assert not [path for path in (tmp_path / "client_body").rglob("*") if path.is_file()]


@pytest.mark.parametrize("proxy", [proxied, caddied])
def test_proxies_pass_no_wish_for_another_protocol_on(tmp_path: Path, proxy: Any) -> None:
    with ear() as (port, heard), proxy(tmp_path, port) as (_, secure), visitor(tmp_path) as http:
        for wanted in ("h2c", "websocket"):
            told = {"connection": "Upgrade", "upgrade": wanted}
            assert http.get(**named(secure, "/"), headers=told).status_code == 200  # type: ignore[arg-type]
    assert len(heard) == 2 and not [head for head in heard if b"upgrade" in head.lower()], heard


@pytest.mark.parametrize("proxy", [proxied, caddied])
def test_proxies_insist_on_tls_and_keep_the_metrics_inside(tmp_path: Path, proxy: Any) -> None:
    with ear() as (port, heard), proxy(tmp_path, port) as (_, secure), visitor(tmp_path) as http:
        found = http.get(**named(secure, "/"))  # type: ignore[arg-type]
        assert found.headers["strict-transport-security"] == "max-age=63072000"
        trust = ssl.create_default_context(cafile=str(tmp_path / "fullchain.pem"))
        elsewhere = httpx.HTTPTransport(verify=trust, local_address="127.0.0.2")
        with httpx.Client(
            transport=elsewhere, headers={"host": "survey.example.org"}, timeout=PATIENCE
        ) as stranger:
            assert stranger.get(**named(secure, "/metrics")).status_code == 403  # type: ignore[arg-type]
            assert stranger.get(**named(secure, "/healthz")).status_code == 200  # type: ignore[arg-type]
    assert not [head for head in heard if b"/metrics" in head]


# -- systemd and containers ----------------------------------------------------------------------------------


def test_the_unit_is_one(tmp_path: Path) -> None:
    analyze = needed("systemd-analyze")
    unit = (DEPLOY / "priorveil.service").read_text()
    [start] = re.findall(r"^ExecStart=(\S+) (.*)$", unit, re.MULTILINE)
    copy = tmp_path / "priorveil.service"
    copy.write_text(unit.replace(start[0], sys.executable))
    verified = subprocess.run([analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")
    settings = "/etc/priorveil/priorveil.toml"
    assert_understood(
        [str(DEPLOY / "priorveil.toml") if word == settings else word for word in start[1].split()]
    )
    assert re.search(r"^MemoryMax=\d+[MG]$", unit, re.MULTILINE)


def assert_understood(command: list[str]) -> None:
    """The command line takes these options."""
    from priorveil.cli import commands
    from priorveil.cli.serve import serve

    assert command[0] == "serve"
    serve.make_context("serve", command[1:], click.Context(commands, **commands.context_settings))


def test_the_container_file_copies_and_installs_what_there_is() -> None:
    """Where it cannot be built (`test_container` does that): what it names is here."""
    lines = [
        line for line in (DEPLOY / "Containerfile").read_text().splitlines() if line[:1] not in ("", "#")
    ]
    steps = [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]
    order = [step for step, _ in steps]
    assert order[:2] == ["ARG", "FROM"] and order.index("USER") < order.index("ENTRYPOINT")
    ignored = (ROOT / ".dockerignore").read_text()
    for step, told in steps:
        if step == "COPY" and not told.startswith("--from"):
            for source in told.split()[:-1]:
                assert (ROOT / source).exists() and f"!{source}\n" in ignored
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    copied = " ".join(told for step, told in steps if step == "COPY")
    assert declared["readme"] in copied and all(name in copied for name in declared["license-files"])
    installed = [told for step, told in steps if step == "RUN" and "pip install" in told]
    assert [("--require-hashes" in told, "--no-index" in told) for told in installed] == [
        (True, False),
        (False, True),
    ]
    entry = next(told for step, told in steps if step == "ENTRYPOINT")
    assert_understood(entry.strip("[]").replace('"', "").replace(",", "").split()[1:])


def test_all_that_a_curator_installs_has_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails after a change of libraries: `make hashes`."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    pins = importlib.import_module("hashes").pins()
    text = (DEPLOY / "requirements.txt").read_text()
    assert dict(re.findall(r"^([a-z0-9-]+)==(\S+) ", text, re.MULTILINE)) == pins
    for block in re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]:
        assert re.fullmatch(r"\S+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+\n", block), block
    assert "://" not in text


def test_the_services_are_valid_and_confined() -> None:
    path = DEPLOY / "compose.yaml"
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    checked = subprocess.run(check, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    declared = yaml.safe_load(path.read_text())
    services = declared["services"]
    assert set(services) == {"database", "curator", "proxy", "metrics"}
    for service in services.values():
        assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["mem_limit"]
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (DEPLOY / source).is_file(), source
    assert [name for name, service in services.items() if "database" in service["networks"]] == [
        "database",
        "curator",
    ]
    assert (DEPLOY / services["curator"]["build"]["context"] / "deploy" / "Containerfile").is_file()
    settings = "/etc/priorveil.toml"
    command = [
        str(DEPLOY / "priorveil.toml") if word == settings else word
        for word in services["curator"]["command"]
    ]
    assert_understood(["serve", "--host", "0.0.0.0", *command])
    environment = services["curator"]["environment"]
    in_force = read_settings(DEPLOY / "priorveil.toml", environment, {}).settings
    [network] = declared["networks"]["inside"]["ipam"]["config"]
    assert in_force.listen.trusted_proxies == network["subnet"]
    limits = in_force.submissions
    everybody = (limits.total_burst, limits.total_rate)  # all people have the proxy's address
    assert (limits.burst, limits.rate) == everybody
    assert services["proxy"]["environment"]["CURATOR"] in (DEPLOY / "prometheus.yml").read_text()


def test_prometheus_takes_its_configuration() -> None:
    check = [needed("promtool"), "check", "config", str(DEPLOY / "prometheus.yml")]
    checked = subprocess.run(check, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


# -- backup and restore, as the page says ---------------------------------------------------------------------


def commands(store: str) -> tuple[list[str], list[str]]:
    """The commands of the page that make a backup, and those that restore it."""
    page = (ROOT / "docs" / "deployment.md").read_text()
    section = page.partition("## Backup and restore")[2].partition("\n## ")[0]
    part = section.partition(f"**{store}.**")[2].partition("\n**")[0]
    backup, restore = (
        [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
        for block in re.findall(r"```console\n(.*?)```", part, re.DOTALL)
    )
    return backup, restore


def obeyed(
    lines: list[str], server: Server, places: dict[str, str], environment: dict[str, str]
) -> list[str]:
    """Run the commands, the service manager's by hand; what they printed."""
    said = []
    for line in lines:
        for old, new in places.items():
            line = line.replace(old, new)
        if line == "systemctl stop priorveil":
            server.stop()
        elif line == "systemctl start priorveil":
            server.start()
        else:
            tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                line,
                shell=True,
                capture_output=True,
                text=True,
                env={**os.environ, **environment, "PATH": tools},
            )
            assert done.returncode == 0, (line, done.stderr)
            said.append(done.stdout)
    return said


@contextmanager
def busy(sender: Sender) -> Iterator[None]:
    """Somebody sends all the time; some reports before what is done here, and some after."""
    done = threading.Event()

    def send() -> None:
        while not done.is_set():
            sender.send(count=20)

    def wait(more: int) -> None:
        least = len(sender.acknowledged) + more
        wait_until(lambda: len(sender.acknowledged) >= least or not thread.is_alive(), f"{more} more reports")
        assert thread.is_alive()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        wait(200)
        yield
        wait(200)
    finally:
        done.set()
        thread.join(PATIENCE)


def saved_and_restored(
    store: str,
    url: str,
    folder: Path,
    campaign: Campaign,
    places: dict[str, str],
    environment: dict[str, str],
) -> None:
    """A backup under load, more reports, and back: all as it was then, and those since are taken again."""
    backup, restore = commands(store)
    with served(url, folder, campaign) as [server]:
        sender = Sender(server, campaign)
        with busy(sender):
            early = set(sender.acknowledged)
            obeyed(backup, server, places, environment)
            saved = set(sender.acknowledged)  # at the most
        late = sender.acknowledged - saved
        *silent, counted = obeyed(restore, server, places, environment)
        assert silent == [""] * (len(restore) - 3)
        assert counted == f"all tallies agree with the reports: 1 campaign, {sender.counted():,} reports\n"
        assert len(early) <= sender.counted() <= len(saved) + 20
        again = b"".join(late)
        assert sender.send(again).json() == {"accepted": len(late), "refused": []}
        server.stop()
    there = stored_ids(url, campaign)
    assert len(there) == len(set(there)) and early | late <= set(there) <= sender.acknowledged
    assert not sender.refused


def test_backup_and_restore_of_sqlite(tmp_path: Path, campaign: Campaign) -> None:
    places = {"/var/lib/priorveil": str(tmp_path), "/var/backups": str(tmp_path)}
    saved_and_restored("SQLite", str(tmp_path / "reports.db"), tmp_path, campaign, places, {})


def test_backup_and_restore_of_postgres(postgres: PostgresServer, tmp_path: Path, campaign: Campaign) -> None:
    needed("pg_dump")
    url = postgres.url("priorveil")

    async def owner() -> None:
        database = await asyncpg.connect(url)
        await database.execute("CREATE ROLE curator LOGIN")
        await database.execute("ALTER DATABASE priorveil OWNER TO curator")
        await database.close()

    asyncio.run(owner())
    url = url.replace("postgres@", "curator@")
    places = {"postgresql://curator@localhost/priorveil": url, "/var/backups": str(tmp_path)}
    environment = {"PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGUSER": "postgres"}
    saved_and_restored("PostgreSQL", url, tmp_path, campaign, places, environment)
