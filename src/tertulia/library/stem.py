"""Stemmer: Porter's algorithm as SQLite's full-text index applies it, with his two later rules (bli, logi).

The databases stem words themselves; this module finds the words of a hit again, to highlight them. Snowball's
"porter" has the rules of 1980, as PostgreSQL does: it stems 223 of 253,119 words differently, among them
*technology* and *possibly* (docs/decisions/009).
"""

from __future__ import annotations

from functools import lru_cache

LONGEST = 64
"""Longer words are not stemmed."""

_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "logi": "log",
}
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = (
    "ement ance ence able ible ment ant ent ion ism ate iti ous ive ize al er ic ou".split()  # noqa: SIM905
)


@lru_cache(maxsize=20_000)
def stem_of(word: str) -> str:
    """The stem of a word in lower case."""
    if not (3 <= len(word) <= LONGEST and word.isascii() and word.isalpha()):
        return word
    word = _without_plural(word)
    word = _without_tense(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = f"{word[:-1]}i"
    word = _replaced(_replaced(word, _STEP_2), _STEP_3)
    return _without_end(_without_ending(word))


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_tense(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending) and _has_vowel(rest := word[: -len(ending)]):
            return _restored_word(rest)
    return word


def _restored_word(rest: str) -> str:
    """Restores the word before its ending: hop(p)ing becomes hop, fil(e)ing becomes file."""
    if rest.endswith(("at", "bl", "iz")):
        return f"{rest}e"
    if (
        len(rest) > 1
        and rest[-1] == rest[-2]
        and rest[-1] not in "aeioulsz"
        and not _is_vowel(rest, len(rest) - 1)
    ):
        return rest[:-1]
    return f"{rest}e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _replaced(word: str, endings: dict[str, str]) -> str:
    found = max((ending for ending in endings if word.endswith(ending)), key=len, default=None)
    if found is None or _measure(rest := word[: -len(found)]) == 0:
        return word
    return rest + endings[found]


def _without_ending(word: str) -> str:
    found = max((ending for ending in _STEP_4 if word.endswith(ending)), key=len, default=None)
    if found is None or _measure(rest := word[: -len(found)]) <= 1:
        return word
    return rest if found != "ion" or rest.endswith(("s", "t")) else word


def _without_end(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _is_vowel(word: str, place: int) -> bool:
    """True for a, e, i, o, u and for a y after a consonant."""
    if word[place] == "y":
        return place > 0 and not _is_vowel(word, place - 1)
    return word[place] in "aeiou"


def _has_vowel(word: str) -> bool:
    return any(_is_vowel(word, place) for place in range(len(word)))


def _measure(word: str) -> int:
    """The number of times a consonant follows a vowel: Porter's m."""
    vowels = [_is_vowel(word, place) for place in range(len(word))]
    return sum(before and not after for before, after in zip(vowels, vowels[1:], strict=False))


def _ends_short(word: str) -> bool:
    """True if the word ends in consonant, vowel, consonant, and the last is none of w, x, y."""
    end = len(word) - 1
    return (
        end >= 2
        and not _is_vowel(word, end)
        and _is_vowel(word, end - 1)
        and not _is_vowel(word, end - 2)
        and word[end] not in "wxy"
    )
