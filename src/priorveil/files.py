"""Files that are written whole or not at all: plans, tables, pictures, remembered answers.

A file is written under another name, flushed to the disk and then renamed. Whatever happens before (an error,
ctrl-C, a full disk, a kill), no file has the final name; after all but a kill the draft is removed too. What a
kill left is removed by the next run that writes the same file: a draft is locked while it is written, and the
system takes the lock from a process that ends, however it ends. Drafts stand beside the file itself, not beside
a link to it.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from priorveil.errors import InvalidInput

try:
    import fcntl
except ImportError:  # as on Windows
    _LOCKS = False
else:
    _LOCKS = True
_PUBLIC, _PRIVATE = 0o666, 0o600  # the first is narrowed by the user's own mask, as for any file


@contextmanager
def whole_file(
    path: Path, replace: bool = False, *, private: bool = False, argument: str = "out"
) -> Iterator[BinaryIO]:
    """A binary file that gets its name when all of it is written; then it and its name are on the disk.

    A `private` file can be read by its owner only, from the first byte. Errors call the path by `argument`. Where a
    link stands, the file that it leads to is written; a pipe, a device or a folder is never replaced.
    """
    given, path = path, written_at(path)
    if is_no_file(path):
        raise InvalidInput(argument, str(given), "it is no file, and is not replaced by one")
    if path.exists() and not replace:
        raise _taken(given, argument)
    if not path.parent.is_dir():
        folder = str(path.parent if given.is_symlink() else given.parent)
        raise InvalidInput(argument, str(given), f"there is no folder {folder!r}: make it first")
    remove_stale(path)
    file, draft = _new_draft(path, _PRIVATE if private else _PUBLIC)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if _LOCKS:  # while it is locked, nobody takes it for stale
                _named(draft, path, replace, argument)
        if not _LOCKS:
            _named(draft, path, replace, argument)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise
    _sync(path.parent)


def written_at(path: Path) -> Path:
    """Where a file is written: where a link leads, so that the link stays."""
    return Path(os.path.realpath(path))


def is_no_file(path: Path) -> bool:
    """Whether something stands there that is no file: a folder, a pipe, a device, a link to itself.

    >>> is_no_file(Path(".")), is_no_file(Path("there is nothing of this name"))
    (True, False)
    """
    target = written_at(path)
    return os.path.lexists(target) and not target.is_file()


def remove_stale(path: Path) -> None:
    """Remove the drafts of a file that nobody is writing any more; where that cannot be told, leave them."""
    for draft in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.part"):
        with suppress(OSError), open(draft, "rb") as file:
            _lock(file)
            draft.unlink()


def _new_draft(path: Path, mode: int) -> tuple[BinaryIO, Path]:
    """A draft with a name of its own, locked where the system has locks."""
    while True:
        draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
        file = open(draft, "xb", opener=partial(os.open, mode=mode))  # noqa: SIM115  it is handed on
        # Between its making and its locking another run may have taken it for stale: then there is a next one.
        taken = False
        try:
            _lock(file)
        except BlockingIOError:
            taken = True
        except OSError:  # no locks here: then nobody removes drafts either
            pass
        if not taken and draft.exists():
            return file, draft
        file.close()


def _lock(file: BinaryIO) -> None:
    """Lock a file; an `OSError` if somebody else has, or if there are no locks here."""
    if sys.platform == "win32" or not _LOCKS:
        raise OSError("there are no such locks")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _named(draft: Path, path: Path, replace: bool, argument: str) -> None:
    """Give a draft its name; a file that came in the meantime is not replaced unasked."""
    if not replace:
        try:
            os.link(draft, path)
        except FileExistsError:
            raise _taken(path, argument) from None
        except OSError:  # a file system without links
            if path.exists():
                raise _taken(path, argument) from None
        else:
            draft.unlink()
            return
    os.replace(draft, path)


def _taken(path: Path, argument: str) -> InvalidInput:
    return InvalidInput(argument, str(path), "it exists: choose another name, or ask to replace it")


def _sync(folder: Path) -> None:
    """Make the names in a folder durable, where a folder can be opened and flushed."""
    if sys.platform == "win32":
        return
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:  # it may be written to, but not read
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # what a file system says that cannot flush folders
            raise
    finally:
        os.close(opened)


_QUOTED = re.compile(r'"[^"]*"')
_HINT = re.compile(r"\ufeff?\"?sep=([,;\t])\"?\s*", re.IGNORECASE)


def separator(text: str) -> str:
    r"""The mark that is in most lines of a text, commas where none is in more than half of them.

    Where two are in as many, semicolons part cells before tabs and tabs before commas, which may be in numbers.
    What is quoted does not count.

    >>> separator("a;1\nb;2\n"), separator("a;b,1\nc,2\n"), separator("a;0,5\nb;0,5\n"), separator("a; b\nc\nd\n")
    (';', ',', ';', ',')
    """
    lines = [line for line in _QUOTED.sub('""', text).splitlines() if line.strip()]
    seen = {mark: sum(mark in line for line in lines) for mark in ";\t,"}
    most = max(seen, key=lambda mark: seen[mark])
    return most if 2 * seen[most] > len(lines) else ","


def hinted(line: str) -> str | None:
    r"""The separator that a first line for Excel names; None if it is no such line.

    >>> hinted("sep=;\n"), hinted("sep;other\n")
    (';', None)
    """
    found = _HINT.fullmatch(line)
    return found[1] if found else None


def mixed(heads: Sequence[str]) -> str:
    """A word for people whose columns are not found where names hold what could part them.

    >>> mixed(["a", "b"]), mixed(["a;b"])
    ('', " (a name holds ';': cells are parted by commas, semicolons or tabs, all by the same)")
    """
    mark = next((mark for head in heads for mark in ";\t," if mark in head), None)
    if mark is None:
        return ""
    return f" (a name holds {mark!r}: cells are parted by commas, semicolons or tabs, all by the same)"
