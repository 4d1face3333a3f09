"""Sources of random words.

A mechanism draws little-endian unsigned 64-bit **words**, and every mechanism documents how many words one
report takes and what each is for. That number never depends on the value, so the randomness that a report used
reveals nothing, and any other implementation (the browser's) can be tested on the same bytes.

Three sources:

* `SystemSource`: the operating system's generator; for bulk, AES-256 in counter mode under a key freshly
  drawn from it. This is the default, and the only one whose reports are private.
* `GeneratorSource`: a numpy generator, for simulations that must repeat.
* `BytesSource`: bytes that were drawn before, for several forms with one draw, and for test vectors.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from priorveil.errors import NOT_SHOWN, InvalidInput

Words = npt.NDArray[np.uint64]
Stream = Callable[[int], Words]

WORD = np.dtype("<u8")

# Words handed to a sampler at a time: 128 KiB, so that they are still in the cache when they are used.
BLOCK_WORDS = 1 << 14
# Below this many words a call to the operating system is cheaper than setting up a cipher.
_FEW_WORDS = 256


class Source(ABC):
    """Anything that gives uniform independent 64-bit words."""

    @abstractmethod
    def words(self, count: int) -> Words:
        """The next `count` words."""

    def stream(self) -> Stream:
        """A function giving the next `count` words at each call; the array may be reused by the next call."""
        return self.words


@dataclass(frozen=True)
class SystemSource(Source):
    """The operating system's generator; in bulk, AES-256-CTR keyed freshly from it.

    Holds no state: every call to `stream` takes a new key, so processes that fork never share words.

    >>> SystemSource().words(3).shape
    (3,)
    """

    def words(self, count: int) -> Words:
        """Words straight from the operating system."""
        return np.frombuffer(os.urandom(8 * count), dtype=WORD)

    def stream(self) -> Stream:
        """AES-256-CTR under a fresh key; on a device without the `cryptography` package, words from the system."""
        try:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        except ImportError:
            return self.words
        encryptor = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
        zeros = np.zeros(BLOCK_WORDS, dtype=WORD)
        buffer = np.empty(BLOCK_WORDS + 2, dtype=WORD)

        def take(count: int) -> Words:
            nonlocal zeros, buffer
            if count > zeros.size:
                zeros, buffer = np.zeros(count, dtype=WORD), np.empty(count + 2, dtype=WORD)
            encryptor.update_into(zeros[:count].view(np.uint8).data, buffer.view(np.uint8).data)
            return buffer[:count]

        return take


@dataclass(frozen=True)
class GeneratorSource(Source):
    """A numpy generator for simulations. It is repeatable, and therefore **not private**.

    >>> first, second = (GeneratorSource(np.random.default_rng(1)) for _ in range(2))
    >>> bool((first.words(5) == second.words(5)).all())
    True
    """

    rng: np.random.Generator

    def words(self, count: int) -> Words:
        """The next words of the generator."""
        return np.asarray(self.rng.integers(0, 2**64, size=count, dtype=np.uint64), dtype=WORD)


@dataclass
class BytesSource(Source):
    """A fixed string of bytes, read once from front to back.

    >>> BytesSource(bytes([7] + [0] * 7)).words(1)
    array([7], dtype=uint64)
    """

    data: bytes
    used: int = 0

    def words(self, count: int) -> Words:
        """The next words of the string; an error when it is used up."""
        end = self.used + 8 * count
        if end > len(self.data):
            advice = f"give at least {end} bytes, eight for every word drawn"
            raise InvalidInput("data", NOT_SHOWN, f"{len(self.data)} bytes; {advice}")
        words = np.frombuffer(self.data, dtype=WORD, count=count, offset=self.used)
        self.used = end
        return words


def as_source(rng: Source | np.random.Generator | None) -> Source:
    """The source meant by an `rng=` argument: None is the operating system.

    >>> as_source(None)
    SystemSource()
    """
    if rng is None:
        return SystemSource()
    if isinstance(rng, np.random.Generator):
        return GeneratorSource(rng)
    if isinstance(rng, Source):
        return rng
    raise InvalidInput(
        "rng", rng, "give None (the operating system), a numpy Generator (for simulations) or a Source"
    )


def word_blocks(source: Source, reports: int, draws: int) -> Iterator[tuple[slice, Words]]:
    """The words for many reports, some reports at a time: `(which reports, their words (n, draws))`.

    A block is only good until the next one is taken. However the reports are cut into blocks, report
    `i` gets the words `i * draws .. (i + 1) * draws - 1` of the stream.

    >>> source = GeneratorSource(np.random.default_rng(1))
    >>> [(rows, words.shape) for rows, words in word_blocks(source, 3, 2)]
    [(slice(0, 3, None), (3, 2))]
    """
    step = max(1, BLOCK_WORDS // draws)
    take = source.words if reports * draws <= _FEW_WORDS else source.stream()
    for start in range(0, reports, step):
        rows = slice(start, min(start + step, reports))
        count = rows.stop - rows.start
        yield rows, take(count * draws).reshape(count, draws)
