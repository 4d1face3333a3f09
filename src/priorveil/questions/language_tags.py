"""Language tags of the columns of XLSForms, which are named `German (de)`, `de` or `German`."""

from __future__ import annotations

import re

from priorveil.questions.texts import LANGUAGE

_BRACKETS = re.compile(rf".*\(\s*({LANGUAGE})\s*\)\s*")
# Names in English and in the language itself, of languages in which surveys are often written.
_NAMES = {
    "amharic": "am", "arabic": "ar", "العربية": "ar", "bengali": "bn", "bangla": "bn", "burmese": "my",
    "chinese": "zh", "dari": "fa-AF", "dutch": "nl", "nederlands": "nl", "english": "en", "farsi": "fa",
    "french": "fr", "français": "fr", "francais": "fr", "german": "de", "deutsch": "de", "greek": "el",
    "haitian creole": "ht", "hausa": "ha", "hebrew": "he", "hindi": "hi", "igbo": "ig", "indonesian": "id",
    "italian": "it", "italiano": "it", "japanese": "ja", "khmer": "km", "kinyarwanda": "rw", "korean": "ko",
    "kurdish": "ku", "lao": "lo", "lingala": "ln", "malagasy": "mg", "malay": "ms", "nepali": "ne",
    "oromo": "om", "pashto": "ps", "persian": "fa", "polish": "pl", "portuguese": "pt", "português": "pt",
    "romanian": "ro", "russian": "ru", "русский": "ru", "somali": "so", "spanish": "es", "español": "es",
    "swahili": "sw", "kiswahili": "sw", "tagalog": "tl", "thai": "th", "tigrinya": "ti", "turkish": "tr",
    "ukrainian": "uk", "українська": "uk", "urdu": "ur", "vietnamese": "vi", "yoruba": "yo",
}  # fmt: skip


def language_tag(name: str) -> str | None:
    """The tag of a language by its name; None if the name has no tag in brackets and is not known.

    >>> language_tag("Portuguese (pt-BR)"), language_tag("fr"), language_tag("Swahili"), language_tag("Klingon")
    ('pt-BR', 'fr', 'sw', None)
    """
    match = _BRACKETS.fullmatch(name)
    if match:
        return match[1]
    known = _NAMES.get(name.strip().lower())
    return known or (name if re.fullmatch(LANGUAGE, name) else None)
