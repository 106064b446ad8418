"""What no words of a text answer, told by the words of a question."""

from __future__ import annotations

import pytest

from core.answer.kinds import unanswered

ASKED = {
    ("Can you tell me when the bridge opened?", "1907"): None,
    ("Do you know who built the mill?", "Anna Berg"): None,
    ("Does the text say who came?", "Bo"): None,
    ("Is it known how many came?", "5"): None,
    ("Was kostet die Fähre?", "5 Euro"): None,
    ("Will's wife was who?", "Anna"): None,
    ("Do you know if he came?", "he"): "yes or no",
    ("Does it say that he came?", "he"): "yes or no",
    ("Did he ask for help?", "help"): "yes or no",
    ("Isn’t the mill open?", "summer"): "yes or no",
    ("Tell me whether it is open.", "open"): "yes or no",
    ("What is the last day to register or renew?", "15 May"): None,
    ("Who was the last king or queen?", "Ruth"): None,
    ("Which is taller, the tower or the mill?", "the mill"): "a comparison",
    ("Who was born first: Anna or Bo?", "Anna"): "a comparison",
    ("How many cups of milk?", "½ cup"): None,
    ("How many popes?", "XIV"): None,
    ("How many popes?", "ill ones"): "a number",
}


@pytest.mark.parametrize("asked", ASKED)
def test_a_question_is_of_its_kind(asked: tuple[str, str]) -> None:
    assert unanswered(*asked) == ASKED[asked]
