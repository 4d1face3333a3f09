"""Broken TOML: the line of each common mistake, and the words for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from priorveil.errors import InvalidFile
from priorveil.surveys.files import read_survey

GOOD = """\
title = "Health"
languages = ["en", "de"]
epsilon = 0.5

[[question]]
name = "smokes"
text = {en = "Do you smoke?", de = "Rauchen Sie?"} # Don't ask "why"
options = {yes = {en = "Yes", de = "Ja"}, no = {en = "No", de = "Nein"}}
prior = {yes = 0.2, no = 0.8}
"""
QUOTES, CURLY = "second quotation mark", "word processor"
TEXT, COMMA, COLON, NUMBER = "text in quotation marks", "comma", "not a colon", "decimal point"


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        # quotation marks
        ('"Health"', '"Health', 1, QUOTES),
        ('"Health"', 'Health"', 1, QUOTES),
        ('"Health"', "'Health", 1, QUOTES),
        ('"Health"', "Health", 1, TEXT),
        ('"Health"', "Gesundheit und Arbeit", 1, TEXT),
        ('["en", "de"]', "[en, de]", 2, TEXT),
        ('en = "Do you smoke?"', "en = Do you smoke?", 7, TEXT),
        ('"Health"', '"My "own" health"', 1, 'for a quotation mark'),
        ('"Health"', r'"C:\data"', 1, "backslash"),
        ('"Health"', "“Health”", 1, CURLY),
        ('"Health"', "„Health“", 1, CURLY),
        ('"Health"', "«Health»", 1, CURLY),
        ('{yes = 0.2, no = 0.8}', "{\u2018yes\u2019 = 0.2, no = 0.8}", 9, CURLY),
        # commas and brackets
        ('["en", "de"]', '["en" "de"]', 2, COMMA),
        ("yes = 0.2, no", "yes = 0.2 no", 9, COMMA),
        ('"Do you smoke?", de', '"Do you smoke?" de', 7, COMMA),
        ('"Ja"}, no', '"Ja"} no', 8, COMMA),
        ("no = 0.8}", "no = 0.8,}", 9, COMMA),
        ('["en", "de"]', '["en", "de"', 2, "[ is not closed"),
        ('["en", "de"]', '["en",\n  "de"', 2, "[ is not closed"),
        ("no = 0.8}", "no = 0.8", 9, "{ is not closed"),
        ("{yes = 0.2, no = 0.8}", "{\n  yes = 0.2,\n  no = 0.8\n}", 9, "in one line"),
        ('de = "Ja"}, no', 'de = "Ja", no', 8, "{ is not closed"),
        # names
        ("epsilon = 0.5", "epsilon = 0.5\nepsilon = 1", 4, "epsilon is given twice, also in line 3"),
        ("yes = 0.2, no", "yes = 0.2, yes", 9, "twice"),
        ('name = "smokes"', 'name = "smokes"\nprior = "unknown"', 10, "prior is given twice, also in line 7"),
        ("epsilon = 0.5", "epsilon 0.5", 3, "NAME = VALUE"),
        ("epsilon = 0.5", "epsilon", 3, "NAME = VALUE"),
        ("epsilon = 0.5", "epsilon =", 3, "no value"),
        ("epsilon = 0.5", 'asked by = "me"', 3, "no spaces"),
        ("epsilon = 0.5", "epsilon: 0.5", 3, COLON),
        ("epsilon = 0.5", "epsilon : 0.5", 3, COLON),
        ("yes = 0.2", "yes: 0.2", 9, COLON),
        # numbers, and true and false
        ("epsilon = 0.5", "epsilon = 0,5", 3, NUMBER),
        ("{yes = 0.2, no = 0.8}", "{yes = 0,2, no = 0,8}", 9, NUMBER),
        ("yes = 0.2", "yes = .2", 9, NUMBER),
        ("yes = 0.2", "yes = 20 %", 9, "from 0 to 1"),
        ("yes = 0.2", "yes = 20%", 9, "from 0 to 1"),
        ("prior = {yes = 0.2, no = 0.8}", 'prior = {file = "a.csv", public = True}', 9, "small letters"),
        ("epsilon = 0.5", "public = FALSE", 3, "small letters"),
        # sections
        ("[[question]]", "[question]\n[[question]]", 6, "in double brackets"),
        ("[[question]]", "[question]\nname = \"a\"\n[question]", 7, "in double brackets"),
    ],
)  # fmt: skip
def test_a_mistake_is_explained(tmp_path: Path, before: str, after: str, line: int, words: str) -> None:
    assert before in GOOD
    (tmp_path / "survey.toml").write_text(GOOD.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(InvalidFile) as refused:
        read_survey(tmp_path / "survey.toml")
    assert refused.value.line == line and words in refused.value.message
    assert "column" not in refused.value.message  # the parser's own words


def test_the_good_file_is_good_with_tabs_and_other_line_ends(tmp_path: Path) -> None:
    for text in (GOOD, GOOD.replace(" = ", "\t=\t"), GOOD.replace("\n", "\r\n")):
        (tmp_path / "survey.toml").write_bytes(text.replace('"Health"', '{en = "H", de = "G"}').encode())
        assert len(read_survey(tmp_path / "survey.toml").questions) == 1


def test_an_uncommon_mistake_has_the_words_of_the_parser(tmp_path: Path) -> None:
    (tmp_path / "survey.toml").write_text(GOOD.replace("epsilon = 0.5", "epsilon = 0.5.1"), encoding="utf-8")
    with pytest.raises(InvalidFile) as refused:
        read_survey(tmp_path / "survey.toml")
    assert refused.value.line == 3 and "column" in refused.value.message


@pytest.mark.parametrize("put", ["", '"', "[", "}", ",", "=", "\n", "#", "\\", '"""'])
def test_a_file_with_any_wrong_letter_is_read_or_refused(tmp_path: Path, put: str) -> None:
    good = GOOD.replace('"Health"', '{en = "H", de = "G"}')
    refusals = 0
    for at in range(len(good)):
        (tmp_path / "survey.toml").write_text(good[:at] + put + good[at + 1 :], encoding="utf-8")
        try:
            read_survey(tmp_path / "survey.toml")
        except InvalidFile as refused:
            refusals += 1
            assert refused.line is None or 1 <= refused.line <= 11
    assert refusals > 100
