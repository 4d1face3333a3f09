"""Priors: what is known about one person's value; with labels, distributions and floats as exact integers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from priorveil import showing
from priorveil.arrays import Array, Numbers, integer_weights, not_one, read_only, whole_numbers
from priorveil.errors import NOT_SHOWN, Hint, InvalidInput, InvalidPrior
from priorveil.frames import (
    Column,
    Library,
    beside_labels,
    index_names,
    is_arrow,
    is_series,
    read_stream,
    table_columns,
    table_names,
    to_frame,
)
from priorveil.priors import disclosure, number_files
from priorveil.priors.domain import (
    Domain,
    LabelDomain,
    as_domain,
    as_label,
    label_positions,
)
from priorveil.priors.joint import (
    CROSS_TABLE,
    SMOOTH_COUNTS,
    SMOOTH_RARE,
    Grids,
    Impossible,
    Joint,
    all_cells,
    joint_masses,
    levels_in,
    number_attributes,
    possible_cells,
)
from priorveil.priors.label_texts import Label, Level, first_labels, label_columns
from priorveil.priors.number_domains import Cells, Density, Grid, NumberDomain, Outside, number_column
from priorveil.priors.people_columns import complete_domain, number_masses, people_labels
from priorveil.priors.read_only import ReadOnly
from priorveil.showing import Figure

Probabilities = Mapping[Label, float] | Numbers
LabelsOrDomain = Domain | Iterable[Hashable] | None

NEVER_HAPPENS = "a value of probability zero cannot be protected: leave it out"
FROM_PEOPLE = Hint("Prior.from_values", purpose="for a column of people's own values")
NORMALISED = 64 * np.finfo(float).eps  # how far from one the mass may be: the rounding of a division


class Prior(ReadOnly):
    """What is publicly known about one person's value: `P[x] = Pr(X = x)`, every value possible.

    Arguments: `probabilities`, a mapping from labels to probabilities (or a pandas Series, whose index has the
    labels, and the names of several attributes), or a sequence of them, positive and adding up to one; `labels`, the
    names of the values (0, 1, 2, ... if not given): strings, numbers, or tuples of them. The attribute `probabilities`
    is a read-only array, `labels` a tuple, and `domain` says what a value may be.

    `assumed` says that nobody knows the probabilities: plans then name their LDP level first, and say that LIP holds
    only if the assumption is right. It is true where nothing was said about shares (`Prior.uniform`, and `Prior.grid`
    and `Prior.cells` without probabilities). Two priors with the same probabilities are equal, assumed or known.

    >>> Prior({"yes": 0.2, "no": 0.8})
    Prior({'yes': 0.2, 'no': 0.8})
    >>> Prior([0.5, 0.6])
    Traceback (most recent call last):
    priorveil.errors.InvalidPrior: probabilities: they add up to 1.1, not to 1; \
for counts, use Prior.from_counts
    """

    def __init__(
        self, probabilities: Probabilities, labels: LabelsOrDomain = None, *, assumed: bool = False
    ) -> None:
        names = index_names(probabilities)
        own_labels, numbers = labelled_numbers("probabilities", probabilities)
        domain = _only_labels("probabilities", own_labels, labels)
        if names is not None:
            domain, numbers = joint_masses(probabilities, names, "refuse", None, (), None, "refuse")
        self.probabilities = as_distribution("probabilities", numbers)
        self.domain = as_domain(domain, len(self.probabilities))
        self.assumed = assumed

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the values."""
        return self.domain.labels

    @classmethod
    def _exact(cls, weights: Sequence[int], labels: LabelsOrDomain, assumed: bool = False) -> Self:
        """A prior proportional to positive integers, without rounding."""
        total = sum(weights)
        prior = cls([w / total for w in weights] if len(weights) > 1 else [1.0], labels, assumed=assumed)
        divisor = math.gcd(*weights)
        prior.__dict__["weights"] = tuple(w // divisor for w in weights)
        return prior

    @classmethod
    def _smooth(
        cls,
        mass: Sequence[float],
        labels: LabelsOrDomain,
        smoothing: float | None,
        assumed: bool = False,
    ) -> Self:
        """A prior proportional to the masses, to each of which the same number is added, if any."""
        if smoothing is not None and not (math.isfinite(smoothing) and smoothing > 0):
            advice = "give a positive number, or leave it out to refuse zeros"
            raise InvalidInput("smoothing", smoothing, advice)
        weights = whole_numbers([Fraction(m) + Fraction(smoothing or 0) for m in mass])
        return cls._exact(weights, labels, assumed)

    @classmethod
    def of(cls, prior: Prior | Probabilities) -> Prior:
        """The prior itself, or one made from what `Prior` accepts."""
        return prior if isinstance(prior, Prior) else cls(prior)

    @classmethod
    def uniform(cls, values: int | Iterable[Label], *, assumed: bool = True) -> Self:
        """Every value equally likely; `values` is how many, or their labels.

        The prior is only `assumed`, unless you state with `assumed=False` that values are known to be equally common.

        >>> Prior.uniform(["a", "b"])
        Prior({'a': 0.5, 'b': 0.5}, assumed=True)
        >>> Prior.uniform(["heads", "tails"], assumed=False)
        Prior({'heads': 0.5, 'tails': 0.5})
        """
        labels = range(values) if isinstance(values, int) else list(values)
        _require_size(values if isinstance(values, int) else len(labels))
        return cls._exact([1] * len(labels), labels, assumed)

    @classmethod
    def joint(
        cls,
        probabilities: Mapping[tuple[Level, ...], float],
        names: Iterable[str],
        smoothing: float | None = None,
        impossible: Impossible = "refuse",
        *,
        grids: Grids = (),
        cells: Mapping[str, Numbers] | None = None,
        outside: Outside = "refuse",
        assumed: bool = False,
    ) -> Self:
        """The prior of several attributes at once: a value is a tuple with a level of each.

        `probabilities` has the cells of the table, and `names` are those of the attributes. All combinations of the
        levels are values. A cell of probability zero, or without one, is refused: either `smoothing` is added to every
        cell, and all are divided by the new total, or `impossible="leave out"` declares that such cells cannot happen.

        An attribute may be a number. The levels of those in `grids` are the points of a grid, as in `Prior.grid`: a
        number is rounded at random between the points of its group, which keeps the mean of each group. `cells` has the
        edges of cells by name, as in `Prior.cells`; their levels are numbers in them, or their labels. `outside` says
        what happens to numbers outside the range of their attribute. `assumed` is that of `Prior`.

        >>> cells = {("young", "yes"): 0.2, ("young", "no"): 0.3, ("old", "no"): 0.5}
        >>> prior = Prior.joint(cells, ("age", "smokes"), impossible="leave out")
        >>> len(prior), prior.levels
        (3, {'age': ('young', 'old'), 'smokes': ('yes', 'no')})
        >>> hours = {("young", 0): 0.2, ("young", 40): 0.3, ("old", 0): 0.4, ("old", 40): 0.1}
        >>> Prior.joint(hours, ("age", "overtime"), grids=("overtime",)).domain.describe()
        'age: young, old; overtime: numbers from 0 to 40'
        """
        domain, mass = joint_masses(probabilities, names, impossible, smoothing, grids, cells, outside)
        as_distribution("probabilities", labelled_numbers("probabilities", probabilities)[1], zero=True)
        if smoothing is None:
            return cls(mass, domain, assumed=assumed)
        return cls._smooth(mass, domain, smoothing, assumed)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the attributes; None for a prior of one attribute."""
        return self.domain.names

    @property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """The levels of each attribute by its name; empty for a prior of one attribute."""
        return self.domain.levels

    @classmethod
    def zipf(cls, size: int, exponent: float = 1.0, labels: Iterable[Label] | None = None) -> Self:
        """Zipf's law: the k-th value has probability proportional to `k ** -exponent`.

        >>> Prior.zipf(3).probabilities.round(4).tolist()
        [0.5455, 0.2727, 0.1818]
        """
        _require_size(size)
        if not math.isfinite(exponent):
            raise InvalidInput("exponent", exponent, "give a finite number; 1 is the classic law")
        mass = np.arange(1, size + 1, dtype=np.float64) ** -exponent
        return cls(mass / mass.sum(), labels)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[Label, int] | Sequence[int] | npt.NDArray[np.int64],
        labels: LabelsOrDomain = None,
        smoothing: float | None = None,
        names: Iterable[str] | None = None,
        impossible: Impossible = "refuse",
        *,
        grids: Grids = (),
        cells: Mapping[str, Numbers] | None = None,
        outside: Outside = "refuse",
    ) -> Self:
        """The prior proportional to whole counts that are public already: a plan publishes them exactly.

        `smoothing` is added to every count first: 1 is Laplace's rule, 0.5 Jeffreys'. Without it (None)
        a count of zero is refused, since a value that cannot happen cannot be protected. `names`, `impossible`,
        `grids`, `cells` and `outside` are those of `joint`, for counts of several attributes. The index of a pandas
        Series may have the `names`, as in `table.stack()` of a cross-table.

        >>> Prior.from_counts({"a": 3, "b": 0}, smoothing=1)
        Prior({'a': 0.8, 'b': 0.2})
        """
        numbers: Sequence[Any]
        names = index_names(counts) if names is None else names
        if names is not None:
            cell_labels, numbers = joint_masses(counts, names, impossible, smoothing, grids, cells, outside)
            labels = _only_labels("counts", cell_labels, labels)
        elif grids or cells:
            raise InvalidInput("names", None, "name the attributes of which grids and cells are some")
        else:
            own_labels, numbers = labelled_numbers("counts", counts)
            labels = _only_labels("counts", own_labels, labels)
        whole = [count_of(c) for c in numbers]
        _require_size(len(whole))
        if smoothing is None:
            if 0 in whole:
                advice = "a value that nobody has cannot be protected: leave it out, or add to every count"
                hint = Hint("smoothing", 1, 0.5, purpose="for the rules of Laplace and Jeffreys")
                raise InvalidPrior(f"counts[{whole.index(0)}]", 0, advice, hint)
            return cls._exact(whole, labels)
        return cls._smooth(whole, labels, smoothing)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        counts: bool = False,
        normalise: bool = False,
        smoothing: float | None = None,
        impossible: Impossible = "refuse",
    ) -> Self:
        r"""The prior in a CSV or JSON file of probabilities, or with `counts` of whole counts that are public already.

        CSV: lines of `label,number`, or numbers alone; under a header also `level,level,...,number` for several
        attributes. JSON: a mapping from labels to numbers, or a list of numbers. `normalise` divides rounded
        probabilities by their sum. `smoothing` is that of `from_counts`, and `impossible` that of `joint`; "leave out"
        drops values of probability zero. A broken file raises `InvalidFile`, which has the line.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "prior.csv")
        ...     _ = path.write_text("answer,share\nyes,0.2\nno,0.8\n")
        ...     Prior.from_file(path)
        Prior({'yes': 0.2, 'no': 0.8})
        """
        if smoothing is not None and not counts:
            raise InvalidInput("smoothing", smoothing, "it is added to counts", Hint("counts=True"))
        if counts and normalise:
            raise InvalidInput("normalise", True, "it is for probabilities: leave it out for counts")
        numbers = number_files.read_prior_numbers(Path(path), whole=counts)
        if impossible == "leave out":
            numbers = numbers.possible()
        elif numbers.names is not None and smoothing is None:
            number_files.require_all_combinations(path, numbers.cells, counts)
        names = numbers.names
        with number_files.file_errors(path):
            cells = numbers.shares().cells if normalise else numbers.cells
            if counts:
                return cls.from_counts(cells, None, smoothing, names, impossible)
            return cls(cells) if names is None else cls.joint(cells, names, None, impossible)

    @classmethod
    def from_values(
        cls,
        values: Iterable[Hashable],
        domain: Iterable[Label] | None = None,
        smoothing: float | None = None,
        *,
        public: bool = False,
        merge_rare: Label | None = None,
        allow_rare: bool = False,
        prior_epsilon: float | None = None,
        names: Iterable[str] | None = None,
        impossible: Impossible = "refuse",
    ) -> Self:
        """The prior of people's own values, with every share rounded to two significant digits.

        A plan publishes its prior, so more than a hundred distinct values are refused, and so are values of fewer than
        ten people. `domain` lists all possible values, which are public then (default: those observed, sorted);
        `public` declares that the values and their shares may be published; `merge_rare` is the label under which rare
        values are merged; `allow_rare` publishes them.

        These rules are no guarantee. `prior_epsilon` gives one: noise makes the prior differentially private at this
        level, for one person added or removed. It needs a `domain`, or `public`. Every call spends the level again.
        `names` and `impossible` are those of `joint`, for values that are tuples.

        >>> Prior.from_values(["b"] * 20 + ["a"] * 10, domain=["a", "b"])
        Prior({'a': 0.33, 'b': 0.67})
        >>> Prior.from_values(["b"] * 20 + ["a"] * 12 + ["c"] * 7 + ["d"] * 8, merge_rare="other")
        Prior({'a': 0.257426, 'b': 0.425743, 'other': 0.316832})
        """
        domain = None if domain is None else LabelDomain(domain).labels
        people = people_labels("values", values, domain or ())
        if not people and domain is None:
            raise InvalidInput("values", NOT_SHOWN, "there are no rows; give a value for each person")
        labels, observed = complete_domain(people, domain), Counter(people)
        if names is not None and domain is None and impossible == "refuse":
            labels = all_cells(levels_in(labels))
        counts = {label: observed[label] for label in labels}
        if prior_epsilon is not None:
            disclosure.require_public(prior_epsilon, public or domain is not None)
            least = 1 if smoothing is None else 0  # a prior has no value of probability zero
            noisy = disclosure.noisy_counts(counts, prior_epsilon)
            counts = {label: max(n, least) for label, n in noisy.items()}
        if names is not None:
            hint = SMOOTH_COUNTS if public or allow_rare else SMOOTH_RARE
            counts = possible_cells(counts, impossible, smoothing, hint, show=False)
        if merge_rare is not None:
            counts = disclosure.merge_rare_values(counts, as_label(merge_rare))
        disclosure.require_two_values(len(counts), merged=len(counts) < len(labels))
        if domain is None and not public:
            disclosure.require_few_values(len(counts))
        if not public and not allow_rare and prior_epsilon is None:
            what = "value" if names is None else "cell"
            disclosure.require_no_rare(list(counts.values()), merge_rare is not None, what)
        rounded = disclosure.round_weights(cls.from_counts(counts, smoothing=smoothing).weights)
        return cls._exact(rounded, LabelDomain(counts) if names is None else Joint(counts, names))

    @classmethod
    def from_table(
        cls,
        table: Any,
        columns: str | Sequence[str],
        *,
        grids: Grids = (),
        cells: Mapping[str, Numbers] | None = None,
        outside: Outside = "refuse",
        **rules: Any,
    ) -> Self:
        """The prior of a column of a table with a row for each person, under the rules of `from_values`.

        `table` is a data frame, an Arrow table or a mapping from names to columns; `rules` are the other arguments
        of `from_values`. Several `columns` give their joint prior. Some of them may be numbers, as in `joint`: `grids`
        has the points by name (or only names, if all numbers are points), `cells` the edges. People between two points
        count at both, in the shares in which they are rounded.

        >>> Prior.from_table({"home": ["rent"] * 30 + ["own"] * 50}, "home")
        Prior({'own': 0.62, 'rent': 0.38})
        >>> people = {"home": ["rent", "own"] * 50, "hours": [10, 20] * 50}
        >>> Prior.from_table(people, ["home", "hours"], grids={"hours": [0, 40]}).probabilities.tolist()
        [0.25, 0.25, 0.38, 0.12]
        """
        names = [columns] if isinstance(columns, str) or not np.iterable(columns) else list(columns)
        table = read_stream(table)
        present = table_names(table)
        if present is None:
            advice = f"type {type(table).__name__}; give a data frame, an Arrow table or a mapping of columns"
            raise InvalidInput("table", NOT_SHOWN, advice)
        if not 0 < len(names) == len(set(names) & set(present)):
            advice = f"the table has {', '.join(map(str, present))}; give at least one column, each only once"
            raise InvalidInput("columns", columns, advice)
        parts = dict(zip(names, table_columns(table, names, "table") or [], strict=True))
        if grids or cells:
            if len(names) < 2:
                advice = "for one column use Prior.grid or Prior.cells, with a public sample"
                raise InvalidInput("columns", names, advice)
            return cls._of_people_with_numbers(
                parts, number_attributes(parts, grids, cells, outside), **rules
            )
        people = [people_labels(name, part) for name, part in parts.items()]
        if len(people) == 1:
            return cls.from_values(people[0], **rules)
        return cls.from_values(list(zip(*people, strict=True)), names=names, **rules)

    @classmethod
    def _of_people_with_numbers(
        cls,
        parts: Mapping[str, Column],
        numbers: Mapping[str, NumberDomain],
        smoothing: float | None = None,
        *,
        public: bool = False,
        allow_rare: bool = False,
        impossible: Impossible = "refuse",
        **other_rules: Any,
    ) -> Self:
        """The joint prior of people's attributes, some of which are numbers, under the rules of `from_values`."""
        for name, rule in other_rules.items():
            advice = "it is for whole counts of labels: leave it out where an attribute is a number"
            raise InvalidInput(name, rule, advice)
        others = {name: people_labels(name, part) for name, part in parts.items() if name not in numbers}
        masses = number_masses(parts, numbers, others)
        if impossible == "refuse":
            levels = {name: complete_domain(people, None) for name, people in others.items()}
            every = all_cells([numbers[n].labels if n in numbers else levels[n] for n in parts])
            masses = {cell: masses.get(cell, 0.0) for cell in every}
        hint = SMOOTH_COUNTS if public or allow_rare else SMOOTH_RARE
        masses = possible_cells(masses, impossible, smoothing, hint, show=False, numbers=numbers)
        if not public:
            disclosure.require_few_values(len(masses))
        if not public and not allow_rare:
            disclosure.require_no_rare(list(masses.values()), what="cell")
        weights = cls._smooth(list(masses.values()), None, smoothing).weights
        return cls._exact(disclosure.round_weights(weights), Joint(masses, parts, numbers))

    @classmethod
    def grid(
        cls,
        points: Numbers,
        probabilities: Numbers | Density | None = None,
        *,
        sample: Iterable[float] | None = None,
        outside: Outside = "refuse",
        smoothing: float | None = None,
        assumed: bool | None = None,
    ) -> Self:
        """A prior of numbers, for means: each is rounded at random to a point next to it, so that its mean is kept.

        `probabilities` are those of the points, after rounding, or a density (a function of a number, up to a factor).
        Instead, `sample` is a sample of numbers that is public already: a plan publishes the shares. `smoothing` is
        added to its count at every point, as in `from_counts`; without it a point that no number is rounded to is
        refused. Numbers outside the range are refused; with `outside="ends"` they count as the first or the last point.

        Without probabilities and sample, all numbers of the range are taken to be equally common, and the prior is
        only `assumed`; `assumed=False` states that they are known to be.

        >>> Prior.grid([0, 50, 100], [0.2, 0.5, 0.3]).labels
        (0.0, 50.0, 100.0)
        >>> Prior.grid([0, 50, 100])
        Prior({0.0: 0.25, 50.0: 0.5, 100.0: 0.25}, assumed=True)
        """
        return cls._of_numbers(Grid(points, outside), probabilities, sample, smoothing, assumed)

    @classmethod
    def cells(
        cls,
        edges: Numbers,
        probabilities: Numbers | Density | None = None,
        *,
        sample: Iterable[float] | None = None,
        outside: Outside = "refuse",
        smoothing: float | None = None,
        assumed: bool | None = None,
    ) -> Self:
        """A prior of numbers, for cumulative shares and quantiles: each belongs to its cell, without rounding.

        A cell holds its lower edge; the last one holds both. There is one cell less than there are edges; the other
        arguments are those of `grid`.

        >>> Prior.cells([0, 18, 65, 100], [0.2, 0.6, 0.2])
        Prior({'[0, 18)': 0.2, '[18, 65)': 0.6, '[65, 100]': 0.2})
        """
        return cls._of_numbers(Cells(edges, outside), probabilities, sample, smoothing, assumed)

    @classmethod
    def _of_numbers(
        cls,
        domain: NumberDomain,
        probabilities: Any,
        sample: Iterable[float] | None,
        smoothing: float | None,
        assumed: bool | None,
    ) -> Self:
        if probabilities is not None and sample is not None:
            advice = "give the probabilities, a density or a sample, and only one of them"
            raise InvalidInput("probabilities", NOT_SHOWN, advice)
        if smoothing is not None and sample is None:
            raise InvalidInput("smoothing", smoothing, "it is added to the counts of a sample: give a sample")
        if sample is not None:
            numbers = number_column("sample", sample)
            domain.require_inside("sample", numbers)
            mass = domain.masses(numbers, np.ones(len(numbers)))
            if smoothing is not None:
                return cls._smooth(mass.tolist(), domain, smoothing, assumed is True)
        elif probabilities is None:
            return cls(domain.flat_masses(), domain, assumed=assumed is not False)
        elif callable(probabilities):
            mass = domain.masses(*domain.density_nodes(probabilities))
        elif np.size(probabilities) != len(domain):
            advice = f"give {len(domain)} numbers, one for each point or cell"
            raise InvalidPrior("probabilities", probabilities, advice)
        else:
            return cls(probabilities, domain, assumed=assumed is True)
        if empty := [label for label, m in zip(domain.labels, mass, strict=True) if m <= 0]:
            advice = f"no mass at {first_labels(empty)}: choose a range without empty parts, or fewer points"
            hint = Hint("smoothing", 1, purpose="to add to every count of a sample")
            raise InvalidPrior("probabilities", NOT_SHOWN, advice, hint)
        return cls(mass / mass.sum(), domain, assumed=assumed is True)

    @property
    def points(self) -> Array | None:
        """The points of a grid of numbers; None for other priors."""
        return self.domain.points

    @property
    def edges(self) -> Array | None:
        """The edges of cells of numbers; None for other priors."""
        return self.domain.edges

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """`P` as integers in exactly the same proportions."""
        return integer_weights(self.probabilities)

    @cached_property
    def fractions(self) -> tuple[Fraction, ...]:
        """`P` as exact fractions.

        >>> Prior.uniform(2).fractions
        (Fraction(1, 2), Fraction(1, 2))
        """
        return tuple(Fraction(w, self.total) for w in self.weights)

    @cached_property
    def total(self) -> int:
        """The sum of the integer weights: `P[x] = weights[x] / total`, exactly."""
        return sum(self.weights)

    def align_to(self, labels: Sequence[Label]) -> Prior:
        """This prior with its values in the order of `labels`; as it is where one side has positions for names.

        >>> Prior({"a": 0.25, "b": 0.75}).align_to(["b", "a"])
        Prior({'b': 0.75, 'a': 0.25})
        """
        if len(labels) != len(self):
            return self
        try:
            order = label_positions(self.labels, labels)
        except KeyError as missing:
            advice = f"it has no value {missing.args[0]!r}"
            raise InvalidPrior("prior", list(self.labels)[:5], advice) from None
        if isinstance(order, range):
            return self
        return Prior._exact([self.weights[at] for at in order], self.domain.in_order(order), self.assumed)

    # A prior is a set of one: it answers what `PriorSet` answers.

    @property
    def centre(self) -> Prior:
        """The prior itself."""
        return self

    @property
    def members(self) -> tuple[Prior, ...]:
        """The prior alone."""
        return (self,)

    @property
    def sample(self) -> None:
        """None: it is no set that a sample leaves possible."""
        return

    def corners(self) -> list[tuple[Fraction, ...]]:
        """The probabilities as exact fractions, the only corner."""
        return [self.fractions]

    def vertices(self) -> Array:
        """The probabilities, as the only row."""
        return self.probabilities[None]

    def extremes(self, columns: Array) -> tuple[Array, Array]:
        """The mean of every column of a (d, K) array, twice: as the smallest and as the largest."""
        law: Array = self.probabilities @ columns
        return law, law

    def document(self) -> dict[str, Any]:
        """The prior as JSON, without its labels; the field `assumed` is there only where it is true."""
        return {"kind": "fixed", "weights": [str(w) for w in self.weights], **assumption(self.assumed)}

    @classmethod
    def read(cls, document: Mapping[str, Any], labels: LabelsOrDomain) -> Self:
        """Read a prior from its JSON document.

        >>> Prior.read(Prior({"a": 0.25, "b": 0.75}).document(), ["a", "b"])
        Prior({'a': 0.25, 'b': 0.75})
        """
        prior = cls.from_counts([int(w) for w in document["weights"]], labels)
        return cls._exact(prior.weights, labels, assumed=True) if document.get("assumed") is True else prior

    def with_domain(self, domain: LabelsOrDomain) -> Prior:
        """The same probabilities, and whether they are assumed, on another domain of as many values.

        >>> Prior.uniform(2).with_domain(["yes", "no"])
        Prior({'yes': 0.5, 'no': 0.5}, assumed=True)
        """
        return Prior._exact(self.weights, domain, self.assumed)

    def push(self, function: Callable[[Label], Label]) -> Prior:
        """The prior of `function(X)`, the paper's surjective `f`.

        >>> Prior({"a": 0.25, "b": 0.25, "c": 0.5}).push(lambda v: "c" if v == "c" else "other")
        Prior({'other': 0.5, 'c': 0.5})
        """
        weights: Counter[Label] = Counter()
        for label, weight in zip(self.labels, self.weights, strict=True):
            weights[as_label(function(label))] += weight
        return Prior._exact(list(weights.values()), list(weights), self.assumed)

    def plot(self) -> Figure:
        """A bar for the share of each value, or a map of the shares of two attributes, as a matplotlib figure."""
        return showing.figure(self)

    def to_frame(self, library: Library | None = None) -> Any:
        """The values and their probabilities as a data frame of pandas, polars or pyarrow (by default: what is there).

        Several attributes have a column each; a single one is in the column `value`.
        """
        columns = beside_labels(label_columns(self.labels, self.names), {"probability": self.probabilities})
        return to_frame(columns, library)

    def _repr_html_(self) -> str:
        return showing.html(self)

    def __len__(self) -> int:
        return len(self.probabilities)

    def _content(self) -> Hashable:
        return self.domain, self.weights

    def __repr__(self) -> str:
        P, ending = self.probabilities, ", assumed=True)" if self.assumed else ")"
        if len(self) > 12:
            return f"Prior({len(self)} values, {P.min():.3g} to {P.max():.3g}{ending}"
        pairs = (f"{label!r}: {p:.6g}" for label, p in zip(self.labels, P, strict=True))
        return "Prior({" + ", ".join(pairs) + "}" + ending


def assumption(assumed: bool) -> dict[str, bool]:
    """The field of a document that says that a prior, or a set of priors, is assumed; none if it is known."""
    return {"assumed": True} if assumed else {}


def _require_size(size: int) -> None:
    if not isinstance(size, int | np.integer) or size < 1:
        raise InvalidPrior("size", size, "a prior needs a whole number of values, at least one")


def count_of(count: object) -> int:
    """A number of people: a whole number, zero or more."""
    value = count.item() if isinstance(count, np.generic) else count
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value % 1:
        raise InvalidPrior("counts", NOT_SHOWN, "a count is a whole number, zero or more", FROM_PEOPLE)
    return int(value)


# -- what callers give --------------------------------------------------------------------------------------


def labelled_numbers(argument: str, numbers: Any) -> tuple[list[Any] | None, Any]:
    """The labels that a mapping or a pandas Series has of its own, None for others; and the numbers.

    Anything else that is no list and no array is refused: it might have labels that would be lost.

    >>> labelled_numbers("counts", {"a": 3, "b": 4}), labelled_numbers("counts", [3, 4])
    ((['a', 'b'], [3, 4]), (None, [3, 4]))
    """
    if isinstance(numbers, Mapping) or is_series(numbers):
        pairs = list(numbers.items())
        return [label for label, _ in pairs], [number for _, number in pairs]
    if table_names(numbers) is not None:
        advice = f"type {type(numbers).__name__}; give one column of numbers, or a pandas Series"
        raise InvalidPrior(argument, NOT_SHOWN, advice, CROSS_TABLE)
    if np.ma.is_masked(numbers):
        raise InvalidPrior(argument, NOT_SHOWN, "some numbers are missing: fill them in")
    if isinstance(numbers, Sequence | np.ndarray):
        return None, numbers
    if is_arrow(numbers):
        return None, np.asarray(numbers)
    advice = "give a list, an array, a mapping from labels to numbers, or a pandas Series"
    raise InvalidPrior(argument, NOT_SHOWN, f"type {type(numbers).__name__}; {advice}")


def _only_labels(argument: str, own_labels: LabelsOrDomain, labels: LabelsOrDomain) -> LabelsOrDomain:
    """The labels that numbers have of their own, or those that were given beside them: not both."""
    if own_labels is not None and labels is not None:
        raise InvalidInput("labels", labels, f"the {argument} have labels of their own: leave these out")
    return labels if own_labels is None else own_labels


# -- labels, matrices and weights, also of secrets, sets and channels ------------------------------------------


def as_distribution(argument: str, probabilities: npt.ArrayLike, zero: bool = False) -> Array:
    """The probabilities as a read-only array; an error if they are not a distribution."""
    try:
        P = read_only(probabilities)
    except (TypeError, ValueError):
        raise InvalidPrior(argument, NOT_SHOWN, "these are not numbers", FROM_PEOPLE) from None
    if P.ndim != 1 or P.size == 0:
        raise InvalidPrior(argument, NOT_SHOWN, f"shape {P.shape}; give a list of at least one number")
    bad = np.flatnonzero(~np.isfinite(P) | (P < 0) | ((P == 0) & (not zero)))
    if bad.size:
        x = int(bad[0])
        if P[x] != 0:
            raise InvalidPrior(f"{argument}[{x}]", NOT_SHOWN, "give finite numbers, zero or more")
        hint = Hint("Prior.from_counts(smoothing=1)", purpose="to smooth it")
        raise InvalidPrior(f"{argument}[{x}]", float(P[x]), NEVER_HAPPENS, hint)
    mass = math.fsum(P)
    if abs(mass - 1) > NORMALISED:
        hint = Hint("Prior.from_counts", purpose="for counts")
        raise InvalidPrior(argument, NOT_SHOWN, f"they {not_one(mass, P.size)}", hint)
    return P
