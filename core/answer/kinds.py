"""Questions that a span of a text can't answer.

Yes or no, how many of a list, which of two is more: the reader points at words, and these want a judgement,
a count or a comparison of its own. Why and how are answered by a phrase at times, and often by a passage.
"""

from __future__ import annotations

import re
from typing import Literal

Asks = Literal["yes or no", "a number", "a comparison", "an explanation"]

_AUXILIARIES = (
    "is are was were am do does did can could will would shall should has have had may might must isn't"
    " aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't shouldn't hasn't haven't"
)
_NUMBERS = (
    "no none zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred"
    " hundreds thousand thousands million millions billion dozen dozens once twice half few several both pair"
    " couple single"
)
_YES_OR_NO = re.compile(
    rf"\W*(?:{'|'.join(_AUXILIARIES.split())})\b(?!'s\b)"
    r"|\W*(?:please )?(?:tell me|say|check|find out|i wonder|do you know|can you tell me) (?:whether|if)\b",
    re.IGNORECASE,
)
_INDIRECT = re.compile(
    r"""\W*(?:
        (?:can|could|would|will|may|do|does|did)[ ]
        (?:you|i|we|it|anyone|anybody|someone|the[ ]\w{1,20})\b.{0,30}
        \b(?:tell|say|know|explain|list|name|show|give|find|ask)\b
        (?![ ](?:\w{1,10}[ ])?(?:whether|if|that)\b)
      | is[ ]it[ ](?:known|clear|said)\b(?![ ](?:whether|if|that)\b)
      | was[ ](?:ist|sind|war|waren|kostet|kosten|bedeutet|heißt|macht|hat|passiert|wird|wurde|kann)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Polite forms of other questions, and German ones that begin alike."""
_ASKS_ON = re.compile(
    r"\bor\b|,? and (?:by |for |in |to )?(?:who|whom|whose|what|which|when|where|why|how)\b"
)
"""A choice, or a second question: both want words of the text."""
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
_NUMBER = re.compile(
    rf"[\d¼-¾⅐-⅞]|\b(?-i:[IVXLC]{{2,}})\b|\b(?:{'|'.join(_NUMBERS.split())})\b", re.IGNORECASE
)
_COMPARISON = re.compile(
    r"\bhow (?:do|does|did)\b.*\bdiffer\b"
    r"|\b(?:which|who|whose|what)\b.*\b(?:more|less|fewer|first|last|earlier|later|older|younger|longer|shorter|"
    r"larger|bigger|smaller|higher|lower|nearer|farther|closer|faster|slower|sooner|better|worse|taller|wider|"
    r"deeper|heavier|lighter|cheaper|richer|poorer|warmer|colder|stronger|newer|greater)\b"
    r"[^,:;–—?]*[,:;–—?].*\bor\b"
    r"|^\W*(?:is|are|was|were|does|do|did)\b.*\b(?:more|less|fewer|above|earlier|later|older|longer)\b.*\bor\b",
    re.IGNORECASE,
)
_EXPLANATION = re.compile(
    rf"\W*(?:why|how come|how (?:to|{'|'.join(_AUXILIARIES.split())}))\b", re.IGNORECASE
)
_LONGEST = 400
"""Characters of a question that are looked at."""


def unanswered(question: str, text: str, *, is_absent: bool = False) -> Asks | None:
    """What a question asks for where words of a text are no answer to it; None where they can be.

    `is_absent`: the reader sees none, or can't tell which words.

    >>> unanswered("How many keepers are there?", "the keepers"), unanswered("How many came?", "nearly six")
    ('a number', None)
    >>> unanswered("Does the lamp turn?", "the lamp"), unanswered("Does the lamp turn?", "no")
    ('yes or no', None)
    >>> unanswered("Which is older, the tower or the mill?", "the mill"), unanswered("Who lit it?", "Ruth")
    ('a comparison', None)
    >>> unanswered("Why did she go?", "", is_absent=True), unanswered("Why did she go?", "to see the mill")
    ('an explanation', None)
    """
    asked = question[:_LONGEST].replace("’", "'")
    if text in ("yes", "no"):
        return None
    if _COMPARISON.search(asked):
        return "a comparison"
    if _YES_OR_NO.match(asked) and not (_ASKS_ON.search(asked) or _INDIRECT.match(asked)):
        return "yes or no"
    if _HOW_MANY.search(asked) and text and not _NUMBER.search(text):
        return "a number"
    if is_absent and _EXPLANATION.match(asked):
        return "an explanation"
    return None
