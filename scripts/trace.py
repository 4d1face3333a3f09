"""Which modules of priorveil three everyday jobs pass through: `python scripts/trace.py`.

A module counts if one of its functions runs during the job. Code that runs once, at import, does not count: each
job runs twice, on different input, and the second run is traced.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import httpx
import numpy as np

import priorveil as pv
from priorveil import cli
from priorveil.collect.campaign import ask
from priorveil.collect.wire import fresh_id
from priorveil.curator import create_app, open_store
from priorveil.curator.store import token_digest
from priorveil.tables import privatize_table

SOURCE = Path(pv.__file__).resolve().parent
LIMITS = {"design of four values": 12, "posted report": 22, "estimate of a Parquet file": 20}
TOKEN = "a curator's token"


class Trace:
    """The modules of priorveil whose functions run, in any thread, while the trace is on."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.on = False
        threading.setprofile(self._note)  # threads that start from now on
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        file = frame.f_code.co_filename
        if self.on and event == "call" and file.startswith(str(SOURCE)):
            self.modules.add(str(Path(file).relative_to(SOURCE)))


def design(trace: Trace) -> None:
    """Design a plan for four values."""
    pv.design(pv.Prior([0.4, 0.3, 0.2, 0.1]), 1.0, pv.Histogram())
    trace.on = True
    pv.design(pv.Prior([0.69, 0.11, 0.13, 0.07]), 1.0, pv.Histogram())


async def _post(trace: Trace, folder: Path) -> None:
    campaign = ask("Which kind of work?", pv.Prior([0.69, 0.11, 0.13, 0.07]), smallest_count=1)
    (plan,) = campaign.plans.values()
    store = open_store(str(folder / "reports.db"))
    await store.open()
    await store.add_campaign(campaign)
    await store.add_token(token_digest(TOKEN))
    await store.close()
    app = create_app(open_store(str(folder / "reports.db")))
    where = f"/v1/campaigns/{campaign.id}"
    async with (
        app.lifespan(),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://curator") as http,
    ):
        for on in (False, True):
            report = {"id": fresh_id(), "plan": plan.id, "report": int(plan.privatize(1))}
            trace.on = on
            (await http.post(f"{where}/reports", json=report)).raise_for_status()
            headers = {"authorization": f"Bearer {TOKEN}"}
            (await http.get(f"{where}/estimates", headers=headers)).raise_for_status()
            trace.on = False


def posted_report(trace: Trace) -> None:
    """Post a report, until it is durable, and read the estimate that holds it."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_post(trace, Path(folder)))


def parquet_estimate(trace: Trace) -> None:
    """Run `priorveil estimate` on a plan and a Parquet file of reports."""
    plan = pv.design(pv.Prior([0.69, 0.11, 0.13, 0.07]), 1.0, pv.Histogram())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.parquet"
        plan.save(Path(folder) / "plan.json")
        for seed, on in ((1, False), (2, True)):
            values = np.random.default_rng(seed).integers(0, 4, 1000)
            privatize_table({"value": values}, plan, "value", path, replace=True)
            trace.on = on
            with contextlib.redirect_stdout(io.StringIO()):
                cli.run(["estimate", str(Path(folder) / "plan.json"), str(path)])


JOBS: dict[str, Callable[[Trace], None]] = {
    "design of four values": design,
    "posted report": posted_report,
    "estimate of a Parquet file": parquet_estimate,
}


def main() -> int:
    """Print the modules of each job; the exit status tells whether every job keeps its limit."""
    within = True
    for name, job in JOBS.items():
        trace = Trace()
        job(trace)
        trace.on = False
        within &= len(trace.modules) <= LIMITS[name]
        print(f"{name}: {len(trace.modules)} modules, at most {LIMITS[name]}")
        for module in sorted(trace.modules):
            print(f"  {module}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
