"""Linear algebra runs in one thread, and users get their threads back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from threadpoolctl import OpenBLASController, ThreadpoolController

import priorveil as pv
from priorveil.reading.blas_threads import single_thread
from priorveil.reading.numbered_reader import NumberedReader


def thread_counts() -> set[int]:
    return {library["num_threads"] for library in ThreadpoolController().info()}


def test_designs_and_estimates_use_one_thread_and_leave_the_rest_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, answer = [], NumberedReader.answer

    def progress(*_: float) -> None:
        seen.append(thread_counts())

    def answer_and_count(*arguments: object) -> object:
        seen.append(thread_counts())
        return answer(*arguments)

    monkeypatch.setattr(NumberedReader, "answer", answer_and_count)
    with ThreadpoolController().limit(limits=2):
        prior = pv.Prior.zipf(30)
        plan = pv.design(prior, 1.0, pv.Distribution(), method="columns", progress=progress, rounds=10)
        estimate = plan.estimate(plan.tally(plan.privatize(np.arange(30), np.random.default_rng(0))))
        before = len(seen)
        estimate.contrast([0])
        assert before >= 2 and len(seen) > before and all(counts == {1} for counts in seen)
        assert thread_counts() == {2}


def test_overlapping_blocks_of_two_threads_use_one_thread_until_the_last_one_ends() -> None:
    first_began, second_began, first_ended = Event(), Event(), Event()

    def first_block() -> None:
        with single_thread():
            first_began.set()
            second_began.wait()
        first_ended.set()

    def second_block() -> set[int]:
        first_began.wait()
        with single_thread():
            second_began.set()
            first_ended.wait()
            return thread_counts()

    with ThreadpoolController().limit(limits=2), ThreadPoolExecutor(2) as pool:
        OpenBLASController.clear_controlling_thread()  # or the other threads could not set a limit
        blocks = pool.submit(first_block), pool.submit(second_block)
        blocks[0].result()
        assert blocks[1].result() == {1}
        assert thread_counts() == {2}


def test_a_failing_block_gives_the_threads_back() -> None:
    with ThreadpoolController().limit(limits=2):
        with pytest.raises(ZeroDivisionError), single_thread():
            _ = 1 / 0
        assert thread_counts() == {2}
