"""Answer labels: replaces "Answer A" in a review with the name of the voice that wrote it.

A reviewer reads "Answer A" and "Answer B" and uses these labels; people read the names. A letter alone is
replaced where it stands like a name, after punctuation or a word such as "than"; "plan B" and "a clear case"
stay as they are.

web/src/lib/conversation/council/labels.ts does the same; tests/vectors/labels checks both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tertulia.core.messages import ReadReply

_WORDS = (
    "answers?|responses?|repl(?:y|ies)|candidates?|antwort(?:en)?|réponses?|respuestas?|rispost[ae]|respostas?"
    "|antwoord(?:en)?|svar(?:et)?|odpowiedź|ответ|回答|答案|응답"
)
_LATIN = "A-Za-z0-9À-ɏ_"
_LABEL = re.compile(
    rf"(?:(?<![{_LATIN}])({_WORDS})[ \t]*)?(?<![{_LATIN}])([A-Z])(?![{_LATIN}+#])", re.IGNORECASE
)
_AFTER = re.compile(
    r"(?:^|[\n.,;:!?…>=<→≻≈~/&|+(–—-]"
    rf"|(?<![{_LATIN}])(?:and|or|but|while|whereas|than|over|as|with|both|to|from|like|unlike|though|because|since"
    r"|that|then|only|between|of|prefer|rank|ranked|put|place|placed|think|believe|find|choose|chose|is|und|oder"
    rf"|aber|als|mit|dann|von|et|ou|mais|que|de|puis|y|o|pero|con|e|ma|poi|och|en|na|и|или|{_WORDS}))"
    r"[ \t]*[*_\"'“”‘’«»`\[({]*$",
    re.IGNORECASE,
)
_ARTICLE = re.compile(
    r"[ \t]+(?!(?:is|was|has|had|does|did|gives|answers|misses|lacks|explains|covers|would|could|can|should"
    r"|will|seems|stays|says|and|or|but|over|vs|versus|then|beats|ist|hat|und|oder|est|et|es|y)\b)[a-zà-ɏ]"
)
_CONTEXT = 40


def with_names(text: str, read_replies: Sequence[ReadReply]) -> str:
    """The text with names instead of labels; unchanged if no reply was shown under a label."""
    names = {reply.label.split()[-1]: reply.name for reply in read_replies if reply.label}
    return _LABEL.sub(lambda label: _name_or_label(label, names), text) if names else text


def _name_or_label(label: re.Match[str], names: dict[str, str]) -> str:
    word, letter = label[1], label[2]
    name = names.get(letter)
    return name if name and (word or _is_used_as_name(label)) else label[0]


def _is_used_as_name(label: re.Match[str]) -> bool:
    before = label.string[max(0, label.start() - _CONTEXT) : label.start()]
    if label[2] == "A" and _ARTICLE.match(label.string, label.end()):
        return False
    return _AFTER.search(before) is not None
