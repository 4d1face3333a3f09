"""Linear algebra runs in one thread, and users get their threads back."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import priorveil as pv
from priorveil.reading.numbered import TableReader


def thread_counts() -> set[int]:
    return {library["num_threads"] for library in ThreadpoolController().info()}


def test_designs_and_estimates_use_one_thread_and_leave_the_rest_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, answer = [], TableReader.answer

    def progress(*_: float) -> None:
        seen.append(thread_counts())

    def answer_and_count(*arguments: object) -> object:
        seen.append(thread_counts())
        return answer(*arguments)

    monkeypatch.setattr(TableReader, "answer", answer_and_count)
    with ThreadpoolController().limit(limits=2):
        prior = pv.Prior.zipf(30)
        plan = pv.design(prior, 1.0, pv.Distribution(), method="columns", progress=progress, rounds=10)
        estimate = plan.estimate(plan.tally(plan.privatize(np.arange(30), np.random.default_rng(0))))
        before = len(seen)
        estimate.contrast([0])
        assert before >= 2 and len(seen) > before and all(counts == {1} for counts in seen)
        assert thread_counts() == {2}
