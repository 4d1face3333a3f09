"""Texts that people read: each is given in all languages of a campaign."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from priorveil.errors import NOT_SHOWN, InvalidInput

Text = Mapping[str, str]  # by language

LONGEST_TEXT = 2000
LONGEST_NAME = 200  # of a question, and of the code of an option
LANGUAGE = "[a-zA-Z]{2,3}(-[a-zA-Z0-9]{1,8}){0,3}"  # a tag


def as_text(
    argument: str, text: object, languages: Sequence[str], keys: tuple[str, ...], least: int = 0
) -> dict[str, str]:
    """A text in every language; a plain one is in the only language, and an empty one is an empty mapping.

    `keys` lead to the text; those of an error also name the language that is wrong.

    >>> as_text("title", "Work", ["en"], ("title",)), as_text("purpose", "", ["en", "de"], ("purpose",))
    ({'en': 'Work'}, {})
    """
    texts = {languages[0]: text} if isinstance(text, str) else text
    if not isinstance(texts, Mapping):
        raise InvalidInput(argument, text, "give a text, or a text for each language", keys=keys)
    if not any(texts.values()):
        if least:
            raise InvalidInput(argument, NOT_SHOWN, "there is no text: write one", keys=keys)
        return {}
    everywhere = f"give it in {', '.join(languages)}"
    for language in languages:
        if not texts.get(language):
            advice = f"there is no text in {language}: {everywhere}"
            raise InvalidInput(argument, NOT_SHOWN, advice, keys=(*keys, language))
        check_text(argument, texts[language], (*keys, language), least=1)
    for language in texts:
        if language not in languages:
            advice = f"{language} is not one of the languages: {everywhere}, or add it to languages"
            raise InvalidInput(argument, NOT_SHOWN, advice, keys=(*keys, language))
    return {language: texts[language] for language in languages}


def check_text(argument: str, text: object, keys: tuple[str, ...], least: int = 0) -> None:
    """Refuse what is no text, or a text that is too short or too long."""
    if not isinstance(text, str) or not least <= len(text.strip()) <= len(text) <= LONGEST_TEXT:
        advice = f"give a text of {least} to {LONGEST_TEXT} characters"
        raise InvalidInput(argument, text, advice, keys=keys)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(argument, text, "half a surrogate pair is not text", keys=keys) from error


def check_languages(languages: Sequence[str]) -> tuple[str, ...]:
    """The languages as tags such as `en` and `pt-BR`, each once, the default first.

    >>> check_languages(["ckb", "zh-Hant-TW"])
    ('ckb', 'zh-Hant-TW')
    """
    tags = tuple(languages) if isinstance(languages, list | tuple) else (languages,)
    valid = all(isinstance(tag, str) and re.fullmatch(LANGUAGE, tag) for tag in tags)
    if not tags or not valid or len({tag.lower() for tag in tags}) < len(tags):
        advice = "give tags such as en or pt-BR, each once, the default first"
        raise InvalidInput("languages", languages, advice, keys=("languages",))
    return tags
