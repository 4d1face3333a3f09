"""Forms: what leaves a device. A form has slots, and a person sends one report for each of them.

A *part* is a plan about some attributes. A slot with several parts asks each person about one of them, drawn at random
with public shares. So a budget that is split over all questions is a form with a slot for each; one question for each
person is one slot with several parts; and questions that are designed together are one part with several attributes.

A submission is a row of little-endian 64-bit words, as many for everybody: its size tells nothing. A report that is
a whole number is one word, and a row of bits its words. A slot with several parts begins with a word that has the
position of the part, and a report that is shorter than the slot is followed by words that are zero.

Randomness: first one word for each slot with several parts, in order. Its upper 20 bits are the draw `r`; count the
cumulative shares that are at most `r`: that is the index of the part. Then each slot in turn takes the words of its
drawn plan.

The draw does not depend on the answers, so it cancels in every lift. The level of a slot is the largest of the levels
of its parts, and the LDP levels of several slots add up (`plans.composition`).

If `n_j` of `N` people are asked about part `j`, they are a random sample of all, and its shares are estimated from
their reports alone. Given `n_j`, these are `n_j` independent reports, so estimates and intervals of the plan hold as
they are. They are multiplied by `N / n_j`. Dividing by the chance of being asked would add the variance of `n_j`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from priorveil.arrays import Ints, Mask
from priorveil.atomic_files import atomic_write
from priorveil.certify import TOTAL
from priorveil.channels import Channel
from priorveil.errors import NOT_SHOWN, ForeignReport, InvalidInput, OutsideDomain, PlanError, TooLarge
from priorveil.frames import Column, is_column, table_columns, table_names, take
from priorveil.mechanisms import Table
from priorveil.mechanisms.interface import FROM_PRIVATIZE
from priorveil.mechanisms.randomness import WORD, Source, Words, as_source
from priorveil.notions import PriorOrSet
from priorveil.plans.composition import MOST_EXACT_ENTRIES, JointLeakage, Names, positions
from priorveil.plans.document import content_id, parse, read_field, require_document
from priorveil.plans.plan import Plan
from priorveil.plans.structure import FormDocument, edition
from priorveil.priors.domain import Codes
from priorveil.reading.estimate import Estimate, EstimateMethod
from priorveil.reading.precision import Precision
from priorveil.reading.tally import Tally, WeightedCounts

SHARE_DENOMINATOR = 1 << 20  # shares are whole numbers over this power of two, so that they are drawn exactly
_SOURCE = "`Form.save`"


@dataclass(frozen=True)
class Part:
    """A plan and the attributes that it is about. The prior of a plan about several attributes has their names."""

    attributes: Names
    plan: Plan

    def __post_init__(self) -> None:
        own = self.plan.reference.names
        is_tuple = isinstance(self.attributes, tuple) and all(isinstance(n, str) for n in self.attributes)
        if (
            not is_tuple
            or self.attributes != (own or self.attributes)
            or (own is None and len(self.attributes) != 1)
        ):
            advice = f"give a tuple of the attributes of the plan's prior, {own or ('name',)}"
            raise InvalidInput("attributes", self.attributes, advice)

    @cached_property
    def width(self) -> int:
        """The number of 64-bit words of a report."""
        return self.plan.mechanism.width or 1

    @cached_property
    def cells(self) -> int:
        """How many numbers count the reports: how many there are, and the counts of a tally."""
        return 1 + int(np.prod(self.plan.reader.counts_shape))

    @property
    def is_unbounded(self) -> bool:
        """Whether no LDP level bounds what a report tells about the attributes."""
        return self.plan.secret is not None or math.isinf(self.plan.certificate.ldp)

    def levels(self) -> JointLeakage:
        """What a report tells about each answer of a person. If the prior is assumed, only the LDP level counts."""
        proof = self.plan.certificate
        if self.plan.prior.assumed:
            return JointLeakage.for_any_prior(proof.ldp)
        return JointLeakage(proof.lip_lower, proof.lip_upper, proof.ldp)

    def sample(self, codes: Codes, source: Source) -> Words:
        """The reports of people whose values have these codes, a row of words for each."""
        return self._as_words(self.plan.mechanism.sample(codes, source))

    def _as_words(self, reports: npt.NDArray[Any]) -> Words:
        return reports.astype(WORD, copy=False).reshape(len(reports), self.width)

    def privatize(self, columns: Mapping[str, Column], rows: Ints, source: Source) -> Words:
        """The reports of some people, a row of words for each; `columns` have the values of all people."""
        values = {name: take(columns[name], rows) for name in self.attributes}
        plan, name = self.plan, " x ".join(self.attributes)
        try:
            own = values if plan.reference.names else values[self.attributes[0]]
            reports = plan.privatize(own, source, missing="pass")
        except OutsideDomain as error:
            domain = plan.domain.describe()
            named = domain if plan.reference.names else f"{name}: {domain}"
            raise OutsideDomain(int(rows[error.row]), named, *error.hints) from None
        if (absent := np.ma.getmaskarray(reports).reshape(len(rows), -1).any(axis=1)).any():
            advice = f"the answer about {name} is missing: fill it in or leave the person out"
            raise InvalidInput(f"values[{int(rows[np.argmax(absent)])}]", None, advice)
        return self._as_words(np.asarray(reports))

    def reports(self, words: Words) -> npt.NDArray[Any]:
        """The reports that begin rows of words, as an array of the plan's mechanism."""
        mechanism = self.plan.mechanism
        if mechanism.width:
            return mechanism.report_array(words[:, : self.width])
        return np.ascontiguousarray(words[:, 0]).view(np.int64)

    def accepts(self, words: Words) -> Mask:
        """Which rows have a report that the plan can have made, and zeros after it."""
        accepted = self.plan.mechanism.accepts(self.reports(words))
        return accepted & ~words[:, self.width :].any(axis=1) if words.shape[1] > self.width else accepted

    def count(self, words: Words) -> Ints:
        """The reports that begin rows of words, added up: how many there are, and the counts of their tally."""
        counts = self.plan.reader.count_valid(self.reports(words))
        cells = np.empty(1 + counts.size, dtype=np.int64)
        cells[0], cells[1:] = len(words), counts.ravel()
        return cells

    def document(self, share: int, plan: Any) -> dict[str, Any]:
        """The part as JSON, with its share and its plan, or the id of that."""
        return {"attributes": list(self.attributes), "share": share, "plan": plan}


ReportsOf = Callable[[Part, Ints], Words]  # about a part, of the people with these numbers


@dataclass(frozen=True)
class Slot:
    """One report of each person: about its part, or about one of several parts, drawn with public `shares`.

    Shares are whole numbers that add up to `SHARE_DENOMINATOR`. Plans for a drawn part have unbiased queries: the
    people who are asked are a sample of all, and an estimate that leans on the prior has no error for the others.
    """

    parts: tuple[Part, ...]
    shares: tuple[int, ...] = (SHARE_DENOMINATOR,)

    def __post_init__(self) -> None:
        if not self.parts or not all(isinstance(part, Part) for part in self.parts):
            raise InvalidInput(
                "parts", [type(part).__name__ for part in self.parts], "give at least one Part"
            )
        if len(self.parts) > 1 and not all(part.plan.query.unbiased for part in self.parts):
            leaning = [part.attributes for part in self.parts if not part.plan.query.unbiased]
            raise InvalidInput("parts", leaning, "parts are drawn: give plans for unbiased queries")
        shares = self.shares
        if len(shares) != len(self.parts) or min(shares) < 1 or sum(shares) != SHARE_DENOMINATOR:
            raise InvalidInput(
                "shares", shares, f"give whole numbers that add up to {SHARE_DENOMINATOR}, one for each part"
            )

    @classmethod
    def by_weights(cls, parts: Sequence[Part], weights: Sequence[float]) -> Slot:
        """A slot whose shares are as the weights, as near as whole numbers can be, and none of them zero.

        A part with a single value has the weight zero, but still gets a share.
        """
        roots = np.asarray(weights, dtype=np.float64)
        roots = roots if roots.any() else np.ones_like(roots)
        ends = np.rint(np.cumsum(roots) / roots.sum() * (SHARE_DENOMINATOR - len(parts))).astype(np.int64)
        return cls(tuple(parts), tuple((1 + np.diff(ends, prepend=0)).tolist()))

    @property
    def is_drawn(self) -> bool:
        """Whether there are several parts. Each person is then asked about one of them."""
        return len(self.parts) > 1

    @cached_property
    def width(self) -> int:
        """The number of 64-bit words: those of the longest report, and one for the part if it is drawn."""
        return self.is_drawn + max(part.width for part in self.parts)

    def levels(self) -> JointLeakage:
        """What the slot's report tells: the largest levels of its parts, since any of them may be drawn."""
        return JointLeakage.largest(part.levels() for part in self.parts)

    @cached_property
    def _lottery(self) -> Table:
        return Table(np.array([self.shares]) * (TOTAL // SHARE_DENOMINATOR))

    def draw(self, people: int, source: Source) -> Ints:
        """The position of a part for each person; a slot with one part draws no words."""
        places = np.zeros(people, dtype=np.int64)
        return self._lottery.sample(places, source) if self.is_drawn else places

    def write(self, reports: ReportsOf, drawn: Ints, words: Words) -> None:
        """Write the reports of all people into rows of zeros; `drawn` has the position of each one's part."""
        if self.is_drawn:
            words[:, 0] = drawn
        for place, part in enumerate(self.parts):
            rows = np.flatnonzero(drawn == place)
            if rows.size:
                start = int(self.is_drawn)
                words[rows, start : start + part.width] = reports(part, rows)

    def by_part(self, words: Words) -> Iterator[tuple[Part, Words, Mask | slice]]:
        """For each part the words of its reports, and which rows they are."""
        if not self.is_drawn:
            yield self.parts[0], words, slice(None)
            return
        for place, part in enumerate(self.parts):
            rows = words[:, 0] == place
            yield part, words[rows, 1:], rows

    def accepts(self, words: Words) -> Mask:
        """Which rows are the report of a part."""
        if not self.is_drawn:
            return self.parts[0].accepts(words)
        accepted = np.zeros(len(words), dtype=bool)
        for part, own, rows in self.by_part(words):
            accepted[rows] = part.accepts(own)
        return accepted


@dataclass(frozen=True)
class Form:
    """What people send: a report for each slot. `design_form` and `design_margins` make one.

    >>> import priorveil as pv
    >>> smokes, drives = (pv.Prior({"yes": p, "no": 1 - p}) for p in (0.2, 0.6))
    >>> plans = {name: pv.design(known, 0.4, pv.Distribution()) for name, known in (("s", smokes), ("d", drives))}
    >>> form = Form(tuple(Slot((Part((name,), plan),)) for name, plan in plans.items()))
    >>> form
    Form(LIP 1.329, LDP 1.329; s, d)
    >>> words = form.privatize({"s": ["yes", "no"], "d": ["no", "no"]})
    >>> words.shape, form.accepts(words).tolist()
    ((2, 2), [True, True])
    >>> list(form.estimate(form.tallies(form.count(words))))
    [('s',), ('d',)]
    """

    slots: tuple[Slot, ...]

    def __post_init__(self) -> None:
        if not self.slots or not all(isinstance(slot, Slot) for slot in self.slots):
            raise InvalidInput(
                "slots", [type(slot).__name__ for slot in self.slots], "give at least one Slot"
            )
        asked = [part.attributes for part in self.parts]
        if repeated := [names for names in asked if asked.count(names) > 1]:
            raise InvalidInput(
                "slots",
                repeated[0],
                "several parts are about these attributes, by which estimates are named: give one",
            )
        if len(asked) > 1 and any(part.is_unbounded for part in self.parts):
            advice = "a plan for a latent secret, or with an infinite LDP level, is a form of its own"
            raise InvalidInput("slots", asked, f"{advice}: nothing bounds what it tells beside other reports")

    @classmethod
    def of(cls, attribute: str | Names, plan: Plan) -> Form:
        """The form with one slot and one part."""
        return cls((Slot((Part((attribute,) if isinstance(attribute, str) else attribute, plan),)),))

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts of all slots, in order."""
        return tuple(part for slot in self.slots for part in slot.parts)

    @property
    def attributes(self) -> Names:
        """All attributes, in order, without repeats."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.attributes))

    @cached_property
    def width(self) -> int:
        """The number of 64-bit words of a submission."""
        return sum(slot.width for slot in self.slots)

    @cached_property
    def id(self) -> str:
        """The SHA-256 of the form's content, with the ids of its plans."""
        return content_id({"slots": self._slots_document(lambda plan: plan.id)})

    def __repr__(self) -> str:
        levels = self.levels()
        asked = ", ".join(_asked_text(slot) for slot in self.slots)
        return f"Form(LIP {levels.lip:.4g}, LDP {levels.ldp:.4g}; {asked})"

    # -- levels --------------------------------------------------------------------------------------------

    def levels(self) -> JointLeakage:
        """What a whole submission tells about all answers together, and so about each of them.

        It holds however the answers depend on each other. One report has its levels of LIP, under the prior of its
        plan; several have the sum of their LDP levels, whatever anyone knows.
        """
        return JointLeakage.together([slot.levels() for slot in self.slots])

    def channel(self, joint: PriorOrSet) -> Channel | None:
        """The channel from the tuples of all answers to whole submissions; None if it cannot be written out.

        A matrix that averages over reports would understate the leakage. Numbers, also beside other attributes, are
        rounded again for each report, so they have no joint channel: that of the grid can leak less.
        """
        places = {part.attributes: positions(part.plan.labels, part.attributes, joint) for part in self.parts}
        if any(part.plan.mechanism.averages or part.plan.domain.rounds for part in self.parts):
            return None
        whole = Channel(np.ones((len(joint), 1)), joint.labels)
        try:
            for slot in self.slots:
                blocks = [
                    part.plan.channel.matrix[places[part.attributes]] * (share / SHARE_DENOMINATOR)
                    for part, share in zip(slot.parts, slot.shares, strict=True)
                ]
                if whole.matrix.size * sum(block.shape[1] for block in blocks) > MOST_EXACT_ENTRIES:
                    return None
                whole = whole.joint_with(Channel(np.hstack(blocks), joint.labels))
        except TooLarge:
            return None
        return whole

    # -- precision -----------------------------------------------------------------------------------------

    @cached_property
    def precision(self) -> dict[Names, Precision]:
        """How precisely 10,000 people determine the answer of each part, by its attributes."""
        return self.expected_precision()

    def expected_precision(self, people: int = 10_000, confidence: float = 0.95) -> dict[Names, Precision]:
        """The precision to expect of each part if this many people fill in the form, by its attributes.

        Only a share of these people is asked about a drawn part.
        """
        return {
            part.attributes: replace(
                part.plan.expected_precision(max(1, round(people * share / SHARE_DENOMINATOR)), confidence),
                people=people,
            )
            for slot in self.slots
            for part, share in zip(slot.parts, slot.shares, strict=True)
        }

    # -- run -----------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator | Source | None = None) -> tuple[int, ...]:
        """For each slot the position of the part that one person is asked about."""
        source = as_source(rng)
        return tuple(int(slot.draw(1, source)[0]) for slot in self.slots)

    def privatize(
        self,
        values: Any,
        draw: Sequence[int] | None = None,
        rng: np.random.Generator | Source | None = None,
    ) -> Words:
        """The submissions of people, a row of words each.

        `values` has a column for each attribute, by name: a data frame, an Arrow table or a mapping; for one person
        it may have single values. `draw` has for each slot the position of the part to report about; then only the
        attributes of these parts are needed. Without it, a part is drawn for each person.
        """
        source = as_source(rng)
        if draw is not None:
            self._require_draw(draw)
        parts = self.parts if draw is None else self.drawn_parts(draw)
        columns = _columns(values, tuple(dict.fromkeys(n for part in parts for n in part.attributes)))
        people = len(next(iter(columns.values())))
        places = self._draws(people, source) if draw is None else [np.full(people, at) for at in draw]
        return self._write(lambda part, rows: part.privatize(columns, rows, source), places)

    def sample(self, codes: Mapping[Names, Codes], source: Source) -> Words:
        """The submissions of people whose values have these codes, by the attributes of every part."""
        places = self._draws(len(next(iter(codes.values()))), source)
        return self._write(lambda part, rows: part.sample(codes[part.attributes][rows], source), places)

    def _draws(self, people: int, source: Source) -> list[Ints]:
        """For each slot the position of each person's part."""
        return [slot.draw(people, source) for slot in self.slots]

    def _write(self, reports: ReportsOf, places: Sequence[Ints]) -> Words:
        """The submissions of people, for whom these parts were drawn."""
        words = np.zeros((len(places[0]), self.width), dtype=WORD)
        for (slot, own), drawn in zip(self._by_slot(words), places, strict=True):
            slot.write(reports, drawn, own)
        return words

    def drawn_parts(self, draw: Sequence[int]) -> tuple[Part, ...]:
        """The parts that a person with this draw is asked about, one for each slot."""
        self._require_draw(draw)
        return tuple(slot.parts[place] for slot, place in zip(self.slots, draw, strict=True))

    def fits_draw(self, draw: Sequence[int]) -> bool:
        """Whether these are positions of parts, one for each slot."""
        sizes = [len(slot.parts) for slot in self.slots]
        return len(draw) == len(sizes) and all(0 <= at < size for at, size in zip(draw, sizes, strict=True))

    def _require_draw(self, draw: Sequence[int]) -> None:
        if not self.fits_draw(draw):
            sizes = ", ".join(str(len(slot.parts)) for slot in self.slots)
            raise InvalidInput("draw", draw, f"give for each slot the position of a part: below {sizes}")

    # -- read ----------------------------------------------------------------------------------------------

    def accepts(self, words: Words) -> Mask:
        """Which rows of words this form can have made."""
        rows = self._rows(words)
        if self._only_part is not None:
            return self._only_part.accepts(rows)
        return reduce(np.logical_and, [slot.accepts(own) for slot, own in self._by_slot(rows)])

    def count(self, words: Words) -> Ints:
        """The submissions added up: for each part the number of its reports, and the counts of its tally.

        A row that this form cannot have made is refused.
        """
        rows = self._rows(words)
        accepted = self.accepts(rows)
        if not accepted.all():
            advice = f"this form never makes such a submission; {FROM_PRIVATIZE}"
            raise ForeignReport(f"reports[{int(np.argmin(accepted))}]", NOT_SHOWN, advice)
        return self.count_valid(rows)

    def count_valid(self, words: Words) -> Ints:
        """As `count`, for rows that `accepts` has accepted."""
        if self._only_part is not None:
            return self._only_part.count(words)
        cells: list[npt.ArrayLike] = []
        for slot, own in self._by_slot(words):
            for part, reports, _ in slot.by_part(own):
                cells.append(part.count(reports))
        return np.concatenate(cells)

    @cached_property
    def cells(self) -> int:
        """How many numbers `count` gives."""
        return sum(part.cells for part in self.parts)

    @cached_property
    def _only_part(self) -> Part | None:
        """The part of a form with a single part: its submissions are read as they are, which is quicker."""
        return self.parts[0] if len(self.parts) == 1 else None

    def tallies(self, cells: Ints) -> tuple[Tally, ...]:
        """The tally of each part, in the order of `parts`, from the cells of `count` or a sum of them."""
        ends = list(accumulate((part.cells for part in self.parts), initial=0))
        if np.shape(cells) != (ends[-1],):
            raise InvalidInput("cells", np.shape(cells), f"give the {ends[-1]} numbers of form.count")
        pieces = [cells[start:end] for start, end in pairwise(ends)]
        return tuple(
            Tally(part.plan.id, own[1:].reshape(part.plan.reader.counts_shape), int(own[0]))
            for part, own in zip(self.parts, pieces, strict=True)
        )

    def people(self, tallies: Sequence[Tally]) -> int:
        """How many people the tallies of all parts count: everybody reports about one part of each slot."""
        return sum(tally.reports for tally in tallies[: len(self.slots[0].parts)])

    def estimate(
        self,
        tallies: Sequence[Tally],
        method: EstimateMethod = "auto",
        attributes: Collection[Names] | None = None,
    ) -> dict[Names, Estimate]:
        """What the tallies of all parts say, by attributes; with `attributes`, only about some of the parts.

        The estimates of a drawn part are for all people of its slot, from the reports of those who were asked about
        it. If no one was asked about a part, its standard errors are infinite.
        """
        tallies = tuple(tallies)
        if len(tallies) != len(self.parts):
            raise InvalidInput("tallies", len(tallies), f"give {len(self.parts)}, one for each part")
        ends = accumulate((len(slot.parts) for slot in self.slots), initial=0)
        estimates: dict[Names, Estimate] = {}
        for slot, (start, end) in zip(self.slots, pairwise(ends), strict=True):
            own = tallies[start:end]
            people = sum(tally.reports for tally in own)
            for part, tally in zip(slot.parts, own, strict=True):
                if attributes is None or part.attributes in attributes:
                    all_people = people if slot.is_drawn else None
                    estimates[part.attributes] = _estimate(part.plan, tally, all_people, method)
        return estimates

    def _by_slot(self, words: Words) -> Iterator[tuple[Slot, Words]]:
        """For each slot its columns of words."""
        ends = accumulate((slot.width for slot in self.slots), initial=0)
        for slot, (start, end) in zip(self.slots, pairwise(ends), strict=True):
            yield slot, words[:, start:end]

    def _rows(self, words: Words) -> Words:
        array = np.asarray(words)
        if array.ndim != 2 or array.shape[1] != self.width or array.dtype != WORD:
            shape = f"{array.dtype} array of shape {array.shape}"
            raise ForeignReport(
                "reports", shape, f"give rows of {self.width} words of type uint64; {FROM_PRIVATIZE}"
            )
        return array

    # -- files ---------------------------------------------------------------------------------------------

    def _slots_document(self, of_plan: Any) -> list[list[dict[str, Any]]]:
        return [
            [part.document(n, of_plan(part.plan)) for part, n in zip(slot.parts, slot.shares, strict=True)]
            for slot in self.slots
        ]

    def document(self) -> dict[str, Any]:
        """The form as JSON, with whole plans, without its id."""
        slots = self._slots_document(lambda plan: {"id": plan.id, **plan.document()})
        return {**edition(FormDocument), "slots": slots}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Form:
        """Read a form from its document, proving every certificate again."""
        document = require_document(document, FormDocument, _SOURCE)

        def read() -> Form:
            return cls(tuple(_read_slot(parts) for parts in document["slots"]))

        form: Form = read_field("slots", read)
        if document["id"] != form.id:
            raise PlanError("id", "the id does not match the content: the form was changed")
        return form

    def save(self, path: str | Path) -> None:
        """Write all plans and shares to a JSON file, replacing an older one."""
        text = json.dumps({"id": self.id, **self.document()}, ensure_ascii=False, indent=1) + "\n"
        with atomic_write(Path(path), replace=True, argument="path") as file:
            file.write(text.encode())

    @classmethod
    def load(cls, path: str | Path) -> Form:
        """Read the file that `save` wrote, proving every certificate again."""
        return cls.read(parse(Path(path).read_bytes(), FormDocument, _SOURCE))


def _read_slot(parts: Sequence[Mapping[str, Any]]) -> Slot:
    plans = (Part(tuple(part["attributes"]), Plan.read(part["plan"])) for part in parts)
    return Slot(tuple(plans), tuple(part["share"] for part in parts))


def _asked_text(slot: Slot) -> str:
    names = [" x ".join(part.attributes) for part in slot.parts]
    if not slot.is_drawn:
        return names[0]
    shares = zip(names, slot.shares, strict=True)
    return "one of " + ", ".join(
        f"{name} ({100 * share / SHARE_DENOMINATOR:.1f} %)" for name, share in shares
    )


def _columns(values: Any, names: Names) -> dict[str, Column]:
    """The columns of a table by name; single values are columns with one person."""
    present = table_names(values)
    if present is None:
        advice = f"type {type(values).__name__}; give a table or a mapping with a column for each attribute"
        raise InvalidInput("values", NOT_SHOWN, f"{advice}: {', '.join(names)}")
    if all(name in present and not is_column(values[name]) for name in names):
        return {name: [values[name]] for name in names}
    columns = table_columns(values, names, "values")
    assert columns is not None  # a table has columns
    return dict(zip(names, columns, strict=True))


def _estimate(plan: Plan, tally: Tally, people: int | None, method: EstimateMethod) -> Estimate:
    """The estimate of a part. For a drawn part, `people` is the number of people of its slot."""
    if people is None:
        return plan.estimate(tally, method)
    answer = plan.estimate(_for_all(tally, people), method)
    if answer.reports:
        return answer
    return replace(answer, std_error=np.full_like(answer.values, np.inf), readings=())


def _for_all(tally: Tally, people: int) -> Tally:
    """The tally with weights that make its reports stand for all people."""
    weight, counts = people / max(tally.reports, 1), tally.counts.astype(np.float64)
    sums = weight * counts, weight**2 * counts
    totals = weight * tally.reports, weight**2 * tally.reports
    return replace(tally, weighted=WeightedCounts(*sums, *totals, least=0.0, offset=0.0))
