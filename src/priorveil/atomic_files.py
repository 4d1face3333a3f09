"""Atomic writes: a file appears when all of it is written, or not at all. Also locks of files.

An atomic write goes to a draft in the same folder, is flushed to the disk, and is then renamed. Until then no file
has the final name, whatever happens (an error, ctrl-C, a full disk, a kill). An error removes the draft. A draft that
a kill left behind is removed by the next write of the same file: a draft is locked while it is written, and the
system releases the locks of a process that ends.
"""

from __future__ import annotations

import errno
import glob
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from priorveil.errors import Hint, InvalidInput

_LOCKS = find_spec("fcntl") is not None  # Windows has none
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)  # the last in folders such as /proc
_PUBLIC, _PRIVATE = 0o666, 0o600  # the user's umask narrows the first, as for any file


@contextmanager
def atomic_write(
    path: Path, replace: bool = False, *, private: bool = False, argument: str = "out"
) -> Iterator[BinaryIO]:
    """Open a binary file that gets its name only when all of it is written and on the disk.

    A `private` file is readable by its owner only, from the first byte. Errors call the path by `argument`. A link is
    followed, and its target is written. A pipe, a device or a folder is never replaced.
    """
    requested_path = path
    path = Path(os.path.realpath(path))
    if problem := write_problem(requested_path):
        raise InvalidInput(argument, str(requested_path), problem)
    if path.exists() and not replace:
        raise _already_exists(requested_path, argument)
    _remove_abandoned_drafts(path)
    try:
        file, draft = _new_draft(path, _PRIVATE if private else _PUBLIC, str(requested_path))
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise OSError(
                error.errno, error.strerror, str(requested_path)
            ) from error  # not the name of the draft
        advice = f"the folder {path.parent} cannot be written to: choose another"
        raise InvalidInput(argument, str(requested_path), advice) from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not _LOCKS:  # Windows cannot rename an open file; elsewhere the lock protects it until then
                file.close()
            _rename(draft, path, replace, argument)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(path.parent)


def write_problem(path: Path) -> str | None:
    """Why a file cannot be written, as far as that can be known before; None if it can.

    >>> write_problem(Path("no such folder/file"))
    'there is no folder no such folder: make it first'
    """
    target = Path(os.path.realpath(path))  # a link to itself stays as it is
    if os.path.lexists(target) and not target.is_file():
        return f"{path} is not a regular file; refusing to overwrite it"
    if not target.parent.is_dir():
        return f"there is no folder {target.parent if path.is_symlink() else path.parent}: make it first"
    for place in (target, target.parent):  # a draft in the folder is renamed to the file
        if place.exists() and not os.access(place, os.W_OK):
            return f"{place} cannot be written to"
    return None


def _remove_abandoned_drafts(path: Path) -> None:
    """Remove drafts of a file that no process is writing; without locks, leave them."""
    for draft in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.part"):
        with suppress(OSError), open(draft, "rb") as file:
            lock_file(file, wait=False)
            draft.unlink()


class _DraftFile(io.FileIO):
    """A new file whose errors name the one that it becomes, such as that of a full disk."""

    def __init__(self, draft: Path, mode: int, final_name: str) -> None:
        super().__init__(str(draft), "x", opener=partial(os.open, mode=mode))
        self._final_name = final_name

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._final_name) from error


def _new_draft(path: Path, mode: int, final_name: str) -> tuple[BinaryIO, Path]:
    """A new draft with a random name, locked where the system has locks."""
    while True:
        draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
        file = io.BufferedWriter(_DraftFile(draft, mode, final_name))
        with suppress(OSError):  # without locks nobody removes drafts
            lock_file(file, wait=True)
        if draft.exists():  # before it was locked, another process may have removed it as abandoned
            return file, draft
        file.close()


def lock_file(file: BinaryIO | int, wait: bool) -> None:
    """Lock a file; `OSError` if the system has no locks, or if another process has this one and we do not `wait`."""
    if sys.platform == "win32" or not _LOCKS:
        raise OSError("this system has no file locks")
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _rename(draft: Path, path: Path, replace: bool, argument: str) -> None:
    """Give a draft its final name; without `replace`, a file that appeared meanwhile is kept."""
    if not replace:
        with suppress(OSError):  # the file exists, or the file system has no hard links
            os.link(draft, path)
            return
        if path.exists():
            raise _already_exists(path, argument)
    os.replace(draft, path)


def _already_exists(path: Path, argument: str) -> InvalidInput:
    hint = Hint("replace=True", purpose="to overwrite it")
    return InvalidInput(argument, str(path), "it exists: choose another name", hint)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    if sys.platform == "win32":
        return
    with suppress(PermissionError):  # a folder may be writable and not readable
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # the file system cannot flush folders
                raise
        finally:
            os.close(descriptor)
