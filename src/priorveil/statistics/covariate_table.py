"""The covariates of a regression: a matrix as it is, the columns of a frame, or a formula."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from priorveil.arrays import Array, Mask
from priorveil.errors import NOT_SHOWN, InvalidInput, needs_extra, plural
from priorveil.frames import floats, table_columns, table_names
from priorveil.priors.label_texts import first_labels

_COLLINEAR = 1e-9  # of a column of length one: what is left of it beside the columns before it


@dataclass(frozen=True, eq=False)
class CovariateTable:
    """Covariates by name, a row of `values` for each; `formula` is the formula as it was applied, if there was one."""

    names: tuple[str, ...]
    values: Array
    formula: Any = None

    @classmethod
    def of(cls, X: Any) -> CovariateTable:
        """The columns of a frame, or of an array (`x1`, `x2`, ...)."""
        names = table_names(X)
        if names is None:
            return cls._of_array(X)
        columns = table_columns(X, names, "X") or []
        numbers = [_covariate(str(name), column) for name, column in zip(names, columns, strict=True)]
        return cls(tuple(map(str, names)), np.array(numbers).reshape(len(names), -1))._checked("X")

    @classmethod
    def _of_array(cls, X: Any) -> CovariateTable:
        advice = "give a matrix of numbers, a row for each report, or a data frame"
        try:
            array = np.ma.filled(np.ma.asarray(X, dtype=np.float64), np.nan)
        except (TypeError, ValueError):  # its message may show an entry
            raise InvalidInput("X", NOT_SHOWN, f"not all entries are numbers: {advice}") from None
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2:
            raise InvalidInput("X", NOT_SHOWN, f"shape {array.shape}; {advice}")
        names = tuple(f"x{k}" for k in range(1, array.shape[1] + 1))
        return cls(names, np.ascontiguousarray(array.T))._checked("X")

    @classmethod
    def of_formula(cls, formula: Any, data: Any) -> CovariateTable:
        """The columns that a formula makes of data (by the library formulaic), or one that was applied before."""
        with needs_extra("statistics"):
            import pandas as pd
        if isinstance(formula, str) and formula.partition("~")[0].strip() and "~" in formula:
            raise InvalidInput("formula", formula, "the reports are the outcome: begin with ~")
        columns = _columns_of(formula, pd.DataFrame(data) if isinstance(data, Mapping) else data)
        spec = columns.model_spec
        values = np.ascontiguousarray(np.asarray(columns, dtype=np.float64).T)
        return cls(tuple(map(str, spec.column_names)), values, spec)._checked("data")

    @classmethod
    def intercept(cls, reports: int) -> CovariateTable:
        """A column of ones alone."""
        return cls(("intercept",), np.ones((1, reports)))

    def _checked(self, argument: str) -> CovariateTable:
        if not self.names:
            raise InvalidInput(argument, NOT_SHOWN, "no columns; for shares alone give a column of ones")
        for name, column in zip(self.names, self.values, strict=True):
            missing = int((~np.isfinite(column)).sum())
            if missing:
                advice = (
                    f"column {name} is missing or infinite in {plural(missing, 'row')}: leave them out first"
                )
                raise InvalidInput(argument, NOT_SHOWN, advice)
        return self

    def require_fit(self, reports: int) -> None:
        """Refuse another number of rows than of reports, and columns that follow from others."""
        rows = self.values.shape[1]
        if rows != reports:
            raise InvalidInput("X", NOT_SHOWN, f"{plural(rows, 'row')} for {plural(reports, 'report')}")
        if rows == 0:
            raise InvalidInput("reports", NOT_SHOWN, "there are none")
        lengths = np.sqrt((self.values**2).mean(axis=1))
        if (zero := np.flatnonzero(lengths == 0)).size:
            raise InvalidInput("X", NOT_SHOWN, f"column {self.names[zero[0]]} is zero in all rows")
        left = np.abs(np.diag(np.linalg.qr((self.scaling @ self.values).T, mode="r")))
        if len(left) < len(self.names):
            raise InvalidInput(
                "X", NOT_SHOWN, f"{plural(rows, 'row')} for {len(self.names)} columns; more are needed"
            )
        follows = np.flatnonzero(left < _COLLINEAR * np.sqrt(rows))
        if follows.size:
            advice = f"column {self.names[follows[0]]} follows from other columns: leave it out"
            raise InvalidInput("X", NOT_SHOWN, advice)

    @property
    def constants(self) -> Mask:
        """Which columns have one value only."""
        return np.asarray(np.ptp(self.values, axis=1) == 0)

    @cached_property
    def scaling(self) -> Array:
        """The matrix that makes covariates of spread one: centred ones, if a column is constant."""
        constant = self.constants
        if not constant.any():
            return np.diag(1 / np.sqrt((self.values**2).mean(axis=1)))
        first = int(np.argmax(constant))
        spread = np.where(constant, self.values[:, 0], self.values.std(axis=1))
        centres = np.where(constant, 0.0, self.values.mean(axis=1)) / self.values[first, 0]
        scaling = np.diag(1 / spread)
        scaling[:, first] -= centres / spread
        return scaling

    def like(self, X: Any) -> CovariateTable:
        """Other rows of the same covariates: data for the formula, or else columns with the same names."""
        if self.formula is not None:
            return self.of_formula(self.formula, X)
        others = self.of(X)
        if len(others.names) != len(self.names) or (
            table_names(X) is not None and others.names != self.names
        ):
            raise InvalidInput("X", NOT_SHOWN, f"give the columns {', '.join(self.names)}, in this order")
        return others


def _columns_of(formula: Any, table: Any) -> Any:
    """The columns that formulaic makes of a table, by a formula or by one that it applied before."""
    with needs_extra("statistics"):
        from formulaic import Formula, model_matrix
        from formulaic.errors import DataMismatchWarning, FormulaicError, FormulaSyntaxError
    text = str(getattr(formula, "formula", formula))
    try:
        read = formula if hasattr(formula, "required_variables") else Formula(formula)
        _require_names(text, read.required_variables, table)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataMismatchWarning)  # it would count others as the baseline
            return model_matrix(formula, table, context={"np": np}, na_action="raise", output="numpy")
    except InvalidInput:
        raise
    except DataMismatchWarning:
        advice = f"a category in it was not there when {text} was fitted: leave out these rows, or fit again"
        raise InvalidInput("data", NOT_SHOWN, advice) from None
    except FormulaSyntaxError:
        raise InvalidInput("formula", text, "this is no formula: write it as ~ age + region") from None
    except (FormulaicError, ValueError) as error:
        if "null" in str(error):
            where = "".join(f" in {name}" for name in str(error).split("`")[1:2])
            advice = f"entries are missing{where}: leave these rows out first, there and in the reports"
            raise InvalidInput("data", NOT_SHOWN, advice) from None
        advice = f"formulaic cannot compute it from these data ({type(error).__name__}): do its columns hold numbers?"
        raise InvalidInput("formula", text, advice) from None


def _require_names(formula: str, needed: Iterable[Any], table: Any) -> None:
    """Refuse a formula with names that are not columns of the table."""
    names = table_names(table)
    if names is None:
        raise InvalidInput("data", NOT_SHOWN, f"type {type(table).__name__}; give a table with named columns")
    if unknown := sorted(str(name) for name in needed if name not in names):
        advice = f"{', '.join(unknown)} is not among the columns: {first_labels(names)}"
        raise InvalidInput("formula", formula, advice)


def read_covariates(X: Any, formula: str | None, data: Any) -> CovariateTable:
    """The covariates of one or the other: columns as they are, or a formula for the columns of data."""
    if (X is None) == (formula is None):
        raise InvalidInput("X", NOT_SHOWN, "give either X, or formula and data")
    if formula is None:
        return CovariateTable.of(X)
    if data is None:
        raise InvalidInput("data", None, "give the table that has the columns of the formula")
    return CovariateTable.of_formula(formula, data)


def _covariate(name: str, column: Any) -> Array:
    return column_numbers("X", column, f"column {name} does not have numbers: use formula= for categories")


def column_numbers(argument: str, column: Any, advice: str) -> Array:
    """A column as floats, with NaN for what is missing."""
    try:
        numbers = floats(column)
        if numbers is not None:
            return numbers
        entries = column if isinstance(column, list) else column.to_pylist()
        if any(isinstance(entry, str | bytes) for entry in entries):
            raise TypeError
        return np.array([np.nan if entry is None else entry for entry in entries], dtype=np.float64)
    except (TypeError, ValueError):  # its message may show an entry
        raise InvalidInput(argument, NOT_SHOWN, advice) from None
