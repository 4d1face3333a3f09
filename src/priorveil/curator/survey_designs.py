"""Designs of surveys for the dashboard, each in a child process."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from typing import Any

import msgspec

from priorveil.curator.group_commit import QueueFull
from priorveil.curator.settings import SurveyLimits
from priorveil.curator.survey_process import REFUSED_STATUS, TOO_LARGE
from priorveil.errors import PriorveilError

_TOO_LONG = (
    "designing it took more than {seconds:g} seconds: ask fewer questions or give fewer options, or run "
    "`priorveil campaign build`, which takes the time that it needs, and give the campaign to the curator"
)
# What Python and its libraries need to be found. The others may hold passwords, and the child reads what somebody sent.
_PASSED_ON = ("HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH", "TMPDIR")
# One thread for arithmetic: the other processors are for requests.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_log = logging.getLogger(__name__)


class SurveyRefused(PriorveilError):
    """A survey that cannot be designed; `problem` has the place of the mistake, and what to do."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem["detail"]))
        self.problem = problem


class SurveyDesigner:
    """Designs surveys one at a time; a few more wait for their turn.

    Designing takes seconds of processor time, and reads what somebody sent. So a child process does it, with limits on
    time and memory. It ends with the request, and with the curator.
    """

    def __init__(self, limits: SurveyLimits) -> None:
        self.limits = limits
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[bytes]] = set()

    def start(self, name: str, content: bytes, people: int) -> asyncio.Task[bytes]:
        """Design the survey in the content of a file with this name; cancel the task to end it early.

        The result is JSON. Raises `QueueFull` if too many wait already, and the task `SurveyRefused`.
        """
        if len(self._tasks) > self.limits.waiting:
            raise QueueFull("too many surveys are being designed: try again later")
        task = asyncio.create_task(self._design(name, content, people))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """End all designs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _design(self, name: str, content: bytes, people: int) -> bytes:
        limits, seconds = self.limits, self.limits.seconds
        options = {"--people": people, "--seconds": seconds, "--memory": limits.memory, "--nice": limits.nice}
        arguments = [str(word) for option in options.items() for word in option]
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        async with self._turn:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "priorveil.curator.survey_process", name, *arguments),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=passed_on | _ENVIRONMENT,
            )
            try:
                async with asyncio.timeout(seconds):
                    result, errors = await child.communicate(content)
            except TimeoutError:
                advice = _TOO_LONG.format(seconds=seconds)
                raise SurveyRefused({"detail": advice, "advice": advice}) from None
            finally:
                await _end(child)
        if child.returncode == -signal.SIGKILL:  # by the kernel, which has no memory left
            raise SurveyRefused({"detail": TOO_LARGE, "advice": TOO_LARGE})
        if child.returncode == REFUSED_STATUS and result:
            raise SurveyRefused(msgspec.json.decode(result))
        if child.returncode != 0:
            places = " < ".join(":".join(frame) for frame in reversed(_FRAME.findall(errors.decode())))
            _log.error("designing a survey failed with status %s: %s", child.returncode, places)
            raise RuntimeError("designing a survey failed")
        return result


async def _end(child: Process) -> None:
    """Kill the process unless it has ended, and wait for its end even if this task is cancelled again."""
    if child.returncode is None:
        child.kill()
        await asyncio.shield(child.wait())
