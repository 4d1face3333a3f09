"""The container of the deployment page: built, run, saved, stopped and started with the commands that stand there.

Needs podman or docker, and the base image; where no registry can be reached, an image of that name made by other
means will do.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from curator.test_api import reports
from patience import PATIENCE, wait_until
from priorveil.questions.campaign import Campaign
from reserved_ports import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
NAME = "priorveil-of-the-tests"  # of the image, the container and the volume


class Container:
    """The commands of the page, with another name and another port."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine, self.port, self.folder = engine, free_port(), folder
        page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
        section = page.partition("## Container")[2].partition("\n## ")[0]
        self.starting, self.saving, self.restoring = (
            [line.removeprefix("$ ") for line in block.splitlines()]
            for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL)
        )

    def obey(self, *commands: str) -> str:
        """What these commands print."""
        said = ""
        for command in commands:
            command = command.replace("podman", self.engine).replace(
                " backup.db", f" {self.folder}/backup.db"
            )
            command = command.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")
            command = re.sub(r"(?<= )(?<!entrypoint )(?<!exec priorveil )priorveil(?=[ :]|$)", NAME, command)
            done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, (command, done.stderr[-2000:])
            said += done.stdout
        return said

    def client(self, token: str = "") -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers=headers,
            verify=False,
            trust_env=False,
            timeout=PATIENCE,
        )

    def wait(self) -> None:
        """Until the curator is ready."""

        def ready() -> bool:
            try:
                return http.get("/readyz").status_code == 200
            except httpx.TransportError:
                return False

        with self.client() as http:
            wait_until(ready, "the curator in the container is ready; see its log")


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    engine = next((each for each in ("podman", "docker") if shutil.which(each)), None)
    if engine is None:
        pytest.skip("neither podman nor docker is installed here")
    [base] = re.findall(r"^ARG BASE=(\S+)$", CONTAINERFILE, re.MULTILINE)
    tried = subprocess.run([engine, "run", "--rm", base, "true"], capture_output=True, text=True, timeout=300)
    if tried.returncode:
        pytest.skip(f"{engine} cannot run {base} here: {tried.stderr.strip().rpartition(chr(10))[2]}")
    yield Container(engine, tmp_path)
    for what in (["rm", "--force", NAME], ["volume", "rm", NAME], ["rmi", "--force", NAME]):
        subprocess.run([engine, *what], capture_output=True)


def test_a_curator_in_a_container(container: Container, campaign: Campaign) -> None:
    *starting, log = container.starting
    container.obey(*starting)
    container.wait()
    [token] = re.findall(r"token \(shown once\): (\S+)", container.obey(log))
    place = f"/v1/campaigns/{campaign.id}"
    early, late = {"reports": reports(campaign, 300)}, {"reports": reports(campaign, 200)}
    with container.client(token) as http:
        assert http.post("/v1/campaigns", content=campaign.to_json()).status_code == 201
        assert http.post(f"{place}/reports", json=early).json() == {"accepted": 300, "refused": []}
        container.obey(*container.saving)
        assert http.post(f"{place}/reports", json=late).json() == {"accepted": 200, "refused": []}
    assert container.obey("podman exec priorveil id -u") == "10001\n"

    container.obey("podman stop -t 45 priorveil")
    assert container.obey("podman inspect --format '{{.State.ExitCode}}' priorveil") == "0\n"
    container.obey("podman start priorveil")
    container.wait()
    with container.client(token) as http:
        assert http.get(f"{place}/estimates").json()["result"]["reports"] == 500

    assert "all tallies agree with the reports: 1 campaign, 300 reports\n" in container.obey(
        *container.restoring
    )
    container.wait()
    with container.client(token) as http:
        assert http.get(f"{place}/estimates").json()["result"]["reports"] == 300
        for _ in range(2):
            assert http.post(f"{place}/reports", json=late).json() == {"accepted": 200, "refused": []}
        assert http.get(f"{place}/estimates").json()["result"]["reports"] == 500
