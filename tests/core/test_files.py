"""File names: a name contains nothing that a model reads and a person does not see (TM 12)."""

from collections.abc import Callable

import pytest

from tertulia.core.attachments import clean_file_name
from tertulia.core.errors import Invalid
from tertulia.core.files import clean_path

HIDDEN = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


@pytest.mark.parametrize(
    "name", [f"plan{HIDDEN}.md", "pl\u200ban.md", "plan\u2060.md", "plan.md\ufe00\ufe01"]
)
@pytest.mark.parametrize("clean", [clean_path, clean_file_name])
def test_a_file_name_with_invisible_characters_is_refused(clean: Callable[[str], str], name: str) -> None:
    with pytest.raises(Invalid, match="nobody sees"):
        clean(name)


@pytest.mark.parametrize(
    "name", [f"{ENGLAND}.md", "نمی\u200cخواهم.md", "\U0001f468\u200d\U0001f469.md", "❤\ufe0f.md"]
)
def test_a_file_name_keeps_joiners_and_flag_tag_sequences(name: str) -> None:
    assert clean_path(f"docs/{name}") == f"docs/{name}"
