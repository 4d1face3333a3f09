"""A file system that loses power: all that was written and not synced is gone, as on a real machine.

It is ext4 in a file, on a loop device. Its ioctl for tests stops it at once, without writing what is in memory. The
disk below it keeps all that it was sent: a disk that loses its own cache is not simulated. Only root may mount.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patience import wait_until

_SHUT_DOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_WITHOUT_FLUSH = struct.pack("I", 2)  # not even the journal


class UnsafeDisk:
    """A file system in the file `image`, mounted at `folder`."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.image, self.folder = image, folder

    def mount(self) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["mount", "-o", "loop", str(self.image), str(self.folder)], capture_output=True)

    def sync(self) -> None:
        """Let all that was written reach the disk."""
        subprocess.run(["sync", "--file-system", str(self.folder)], check=True)

    def cut_power(self) -> None:
        """Lose all that is not on the disk. From now on nothing can be read or written."""
        folder = os.open(self.folder, os.O_RDONLY)
        fcntl.ioctl(folder, _SHUT_DOWN, _WITHOUT_FLUSH)
        os.close(folder)

    def unmount(self) -> None:
        def succeeds() -> bool:
            return subprocess.run(["umount", str(self.folder)], capture_output=True).returncode == 0

        wait_until(succeeds, f"{self.folder} is not in use")

    def restart(self) -> None:
        """Have power again. All programs that used the file system have ended."""
        self.unmount()
        assert self.mount().returncode == 0


@contextmanager
def unsafe_disk(megabytes: int = 512) -> Iterator[UnsafeDisk]:
    """A disk of this size, which is removed in the end."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("only root may mount a file system, and mkfs.ext4 makes it")
    with tempfile.TemporaryDirectory(prefix="priorveil-disk-") as name:
        Path(name).chmod(0o755)  # PostgreSQL runs as another user
        disk = UnsafeDisk(Path(name) / "image", Path(name) / "mounted")
        disk.folder.mkdir()
        with disk.image.open("wb") as image:
            image.truncate(megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(disk.image)], check=True)
        mounted = disk.mount()
        if mounted.returncode:
            pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
        try:
            yield disk
        finally:
            disk.unmount()
