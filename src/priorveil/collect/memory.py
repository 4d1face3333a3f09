"""What a person has answered, remembered on disk: one file for each campaign.

A file is believed only if it is whole and says what it must: an answer that cannot be read is said, never taken
for one that was not given, which would be answered twice.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from priorveil.collect.transport import campaign_address
from priorveil.collect.wire import Report
from priorveil.errors import InvalidInput, PriorveilError
from priorveil.files import atomic_write
from priorveil.plans.document import content_id


class NotKept(PriorveilError, OSError):
    """An answer cannot be remembered, the disk being full, say; what is not remembered is not sent."""


@dataclass(frozen=True)
class Remembered:
    """An answer as it is kept: the report, the plan that made it, where it goes, and what became of it."""

    url: str
    report: Report
    plan: dict[str, Any]
    sent: bool = False
    refused: str | None = None


class Memory:
    """Remembered answers, one file for each campaign in a folder; in this process only if there is none."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = None if folder is None else _made(folder)
        self._kept: dict[str, Remembered] = {}
        self._lock = threading.RLock()
        list(self)  # what cannot be read is said now

    def __iter__(self) -> Iterator[Remembered]:
        """All answers as they are now, those of other processes too."""
        if self.folder is None:
            return iter(list(self._kept.values()))
        read = (_read(path) for path in _answers_in(self.folder))
        return iter([kept for kept in read if kept is not None])

    def find(self, campaign: str) -> Remembered | None:
        """The answer to a campaign."""
        return self._kept.get(campaign) if self.folder is None else _read(self._path(campaign))

    def keep(self, answer: Remembered) -> None:
        """Keep an answer, or what became of it; it is durable on return. Raises `NotKept` where it is not."""
        if self.folder is None:
            self._kept[answer.report.campaign] = answer
            return
        path = self._path(answer.report.campaign)
        with self._writing(), atomic_write(path, replace=True, private=True, argument="state") as file:
            file.write(json.dumps(asdict(answer)).encode())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else decides on an answer meanwhile: what is spent cannot change between look and answer."""
        with self._lock, ExitStack() as held:
            if self.folder is not None and sys.platform != "win32":
                import fcntl

                with self._writing():
                    lock = held.enter_context((self.folder / ".lock").open("w"))
                    fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed, or the process dies
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            advice = (
                "nothing is sent that is not remembered. Make room there, or give another folder as state"
            )
            raise NotKept(
                f"no answer can be remembered in {self.folder} ({_cause(error)}): {advice}"
            ) from error

    def _path(self, campaign: str) -> Path:
        return (self.folder or Path()) / f"{campaign}.json"


def own_folder() -> Path:
    """Where this user's answers are kept: `PRIORVEIL_STATE`, or a folder for the state of programs."""
    told = os.environ.get("PRIORVEIL_STATE")
    if told:
        return Path(told)
    base = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.local/state"
    return Path(base) / "priorveil" / "answers"


def _made(folder: str | Path) -> Path:
    """The folder, made if need be."""
    try:
        made = Path(folder).expanduser()
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InvalidInput("state", str(folder), "give a folder; this is a file") from error
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        advice = f"it cannot be made ({_cause(error)}): give a folder that can be written to"
        raise InvalidInput("state", str(folder), advice) from error
    return made


def _answers_in(folder: Path) -> list[Path]:
    """The files of answers; a folder that cannot be read is not an empty one."""
    try:
        return sorted(folder / name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError as error:
        advice = f"it cannot be read ({_cause(error)}): give a folder of your own"
        raise InvalidInput("state", str(folder), advice) from error


def _read(path: Path) -> Remembered | None:
    """An answer from its file; None if there is no such file."""
    advice = "move it away, and know it may be answered twice"
    try:
        return _understood(json.loads(path.read_text(encoding="utf-8")), path.stem)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput("state", str(path), f"it cannot be read ({_cause(error)}): {advice}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidInput("state", str(path), f"not a remembered answer: {advice}") from error


def _understood(read: Any, campaign: str) -> Remembered:
    """The answer to a campaign, from JSON; a wrong one raises one error or another."""
    kept = Remembered(**{**read, "report": Report(**read["report"])})
    report, labels = kept.report, kept.plan["labels"]
    sound = (
        campaign_address(kept.url)[1] == report.campaign == campaign
        and content_id(kept.plan) == kept.plan["id"] == report.plan
        and isinstance(labels, list)
        and all(isinstance(label, str | int) for label in labels)
        and isinstance(report.id, str)
        and isinstance(report.report, str | int)
        and isinstance(kept.sent, bool)
        and isinstance(kept.refused, str | None)
    )
    if not sound:
        raise ValueError("its fields do not belong together")
    return kept


def _cause(error: Exception) -> str:
    """What went wrong, in the system's words if it has any."""
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
