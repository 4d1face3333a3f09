"""Surveys in JSON, as the form on the dashboard writes them: the keys of TOML, and the tables of priors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from priorveil.errors import InvalidFile, not_text_advice
from priorveil.formatting import number_text
from priorveil.plans.structure import edition
from priorveil.questions.structure import CampaignDocument
from priorveil.questions.survey_document import Place, SurveyDocument, is_number
from priorveil.questions.toml_file import TOO_LONG

TABLES = "tables"


def read_json(path: Path, content: bytes) -> SurveyDocument:
    """Read a survey in JSON. The place of a mistake is given by keys.

    `tables` has the tables that priors name as `sheet`: lists of rows, each with its cells by column.
    """

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(values := dict(pairs)) < len(pairs):
            raise InvalidFile(path, "two entries of an object have the same key: keep one of them")
        return values

    try:
        document = json.loads(content.decode("utf-8-sig"), object_pairs_hook=unique_keys)
    except UnicodeDecodeError:
        raise InvalidFile(path, not_text_advice(content[:4])) from None
    except json.JSONDecodeError as error:
        advice = f"this is not JSON: check its quotation marks, brackets and commas ({error.msg})"
        raise InvalidFile(path, advice, line=error.lineno) from None
    except InvalidFile:
        raise
    except (ValueError, RecursionError):
        raise InvalidFile(path, TOO_LONG) from None
    if not isinstance(document, dict):
        raise InvalidFile(path, "a survey is an object: put its keys into braces")
    if document.get("format") == edition(CampaignDocument)["format"]:
        advice = "this is a campaign, which is designed already: give the survey that it was built from"
        raise InvalidFile(path, advice)
    tables = _tables(path, document.pop(TABLES, {}))
    return SurveyDocument(path, document, lambda keys: Place(keys=keys), tables)


def _tables(path: Path, tables: Any) -> dict[str, list[dict[str, str]]]:
    """The tables with all cells as strings."""
    if not isinstance(tables, dict):
        raise InvalidFile(path, f"{TABLES}: give tables by name", keys=(TABLES,))
    return {name: _table(path, name, rows) for name, rows in tables.items()}


def _table(path: Path, name: str, rows: Any) -> list[dict[str, str]]:
    valid = isinstance(rows, list) and all(
        isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows
    )
    if not valid or not all(
        isinstance(cell, str) or is_number(cell) for row in rows for cell in row.values()
    ):
        advice = "give a list of rows with the same columns, and a text or a number in each cell"
        raise InvalidFile(path, f"{TABLES} {name}: {advice}", keys=(TABLES, name))
    return [{column: _cell_text(cell) for column, cell in row.items()} for row in rows]


def _cell_text(cell: str | float) -> str:
    return cell.strip() if isinstance(cell, str) else number_text(float(cell))
