"""Files are written completely or not at all, and with the right permissions."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

import priorveil as pv
from priorveil.atomic_files import atomic_write
from priorveil.errors import InvalidInput
from refusals import raises

posix = pytest.mark.skipif(sys.platform == "win32", reason="files have no modes, locks and limits there")
PLAN = pv.design([0.5, 0.3, 0.2], 1.0, pv.Histogram())


def save(what: str, folder: Path) -> None:
    """Save a plan, or an answer that a client remembers."""
    if what == "plan":
        PLAN.save(folder / "plan.json")
    else:
        client = pytest.importorskip("priorveil.device.client", exc_type=ImportError)
        answer = client.StoredAnswer("https://example.org", "c" * 64, "everyone", "f" * 64, (0,), 1.0)
        client.AnswerStore(folder).keep(answer)


def test_the_old_file_stays_on_failure(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "f", replace=True) as file:
        file.write(b"new")
        1 / 0  # noqa: B018
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


def test_what_exists_is_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    with raises(InvalidInput, argument="picture"), atomic_write(tmp_path / "f", argument="picture"):
        pass
    with raises(InvalidInput, argument="out"), atomic_write(tmp_path / "g") as file:
        file.write(b"ours")
        (tmp_path / "g").write_bytes(b"theirs")  # it came while we wrote
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"f": b"old", "g": b"theirs"}


@posix
def test_what_a_kill_left_is_removed_and_what_others_write_is_not(tmp_path: Path) -> None:
    (tmp_path / ".f.0123abcd.part").write_bytes(b"half")
    with atomic_write(tmp_path / "f") as first:
        with atomic_write(tmp_path / "f") as second:
            second.write(b"second")
        first.write(b"first")
        (tmp_path / "f").unlink()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"f": b"first"}


def test_without_locks_the_drafts_of_others_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priorveil.atomic_files._LOCKS", False)
    (tmp_path / ".f.0123abcd.part").write_bytes(b"half")
    for content in (b"one", b"two"):
        with atomic_write(tmp_path / "f", replace=content == b"two") as file:
            file.write(content)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".f.0123abcd.part", "f"]
    assert (tmp_path / "f").read_bytes() == b"two"


@posix
def test_a_private_file_is_never_open_to_others(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with atomic_write(tmp_path / "f", private=True):
            (draft,) = tmp_path.iterdir()
            assert stat.S_IMODE(draft.stat().st_mode) == 0o600
        with atomic_write(tmp_path / "g"):
            pass
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "fg"] == [0o600, 0o666]


@posix
def test_a_folder_that_can_only_be_written_to_will_do(tmp_path: Path) -> None:
    folder = tmp_path / "box"
    folder.mkdir()
    folder.chmod(0o300)
    try:
        PLAN.save(folder / "plan.json")
    finally:
        folder.chmod(0o700)
    assert [path.name for path in folder.iterdir()] == ["plan.json"]


@posix
@pytest.mark.parametrize("replace", [False, True])
def test_only_files_are_replaced(replace: bool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "device").symlink_to("/dev/null")
    for name in ("pipe", "folder", "loop", "device"):
        with raises(InvalidInput, argument="out"), atomic_write(tmp_path / name, replace):
            raise AssertionError("it is refused before anything is written")
    assert (tmp_path / "pipe").is_fifo() and Path("/dev/null").is_char_device()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["device", "folder", "loop", "pipe"]


@posix
def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "f")
    for content in (b"one", b"two"):  # the first time the link leads to nothing yet
        with atomic_write(tmp_path / "link", replace=content == b"two") as file:
            file.write(content)
            # the draft is in the folder of the file, where it can be renamed
            assert not list(tmp_path.glob(".*.part"))
        assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "f").read_bytes() == content
    with raises(InvalidInput, argument="out"), atomic_write(tmp_path / "link"):
        pass
    (tmp_path / "lost").symlink_to(tmp_path / "gone" / "f")
    with (
        raises(InvalidInput, argument="out"),
        atomic_write(tmp_path / "lost"),
    ):
        pass


@posix
@pytest.mark.parametrize("what", ["plan", "answer"])
def test_a_full_disk_leaves_nothing(what: str, tmp_path: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # a file may not be longer
    try:
        with pytest.raises(OSError, match="File too large") as error:
            save(what, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(tmp_path) in str(error.value) and ".part" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["plan", "answer"])
def test_plans_and_answers_are_on_the_disk_before_they_have_their_name(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, move = os.fsync, os.replace

    def synced(place: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(place).st_mode) else "file")
        fsync(place)

    def moved(draft: Path, path: Path) -> None:
        steps.append("name")
        move(draft, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", moved)
    save(what, tmp_path)
    assert steps == ["file", "name"] + ["folder"] * (sys.platform != "win32")


def test_a_plan_needs_its_folder(tmp_path: Path) -> None:
    with raises(InvalidInput, argument="path"):
        PLAN.save(tmp_path / "gone" / "plan.json")


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    longest = tmp_path / ("n" * 250)  # a name that the file could have, and its draft cannot
    with pytest.raises(OSError, match="too long") as failed:
        PLAN.save(longest)
    assert failed.value.filename == str(longest) and ".part" not in str(failed.value)


@pytest.mark.skipif(not os.access("/proc", os.W_OK), reason="only root gets as far as creating the file")
def test_a_folder_in_which_nothing_can_be_created_is_named() -> None:
    with raises(InvalidInput, argument="path"):
        PLAN.save(Path("/proc/p.json"))
