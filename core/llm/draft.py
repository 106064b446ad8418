"""A reply as it is written, its thoughts apart.

Thoughts come in fields of their own, or in the text: between tags, before a closing tag that nothing opened
(the prompt did), after one that the tokens ran out on, or in channels. A tag opens at the head of a line,
behind another one anywhere. One in quotation marks is text. Tokens that end a reply are no part of it.
"""

from __future__ import annotations

import re

_WORD = r"(?:[a-z]{1,20}[:_])?(?:think(?:ing)?|thoughts?|reasoning)"
_ROLE = r"(?:<\|end\|>)?(?:<\|start\|>assistant)?"
_OPENING = rf"(?i:<{_WORD}>|<\|(?:start|begin_of)_{_WORD}\|>)|\[THINK\]|◁think▷|<\|channel>thought"
_OPENS = (
    rf"(?m:^)[ \t]*(?:{_OPENING})",
    rf"{_ROLE}<\|channel\|>(?:analysis|commentary)[^<]{{0,99}}<\|message\|>",
    r"\Aanalysis(?=[A-Z])",  # a channel whose marks were lost, as is `assistantfinal`
)
_CLOSES = (
    rf"(?i:</{_WORD}>|<\|end_(?:of_)?{_WORD}\|>(?:\s*<\|(?:start|begin_of)_\w{{1,20}}\|>)?)",
    r"\[/THINK\]|◁/think▷|<channel\|>|assistantfinal",
    rf"{_ROLE}<\|channel\|>final(?:[^<]|<\|constrain\|>){{0,99}}<\|message\|>",
)
_TAG = re.compile(
    rf"(?<![`'\"“‘])(?:(?P<opens>{'|'.join(_OPENS)})|(?P<midway>{_OPENING})|{'|'.join(_CLOSES)})"
)
_BEHIND_PROMPT = re.compile(rf"(?:{_OPENING})\s*\Z")
_END = re.compile(r"(?i:(?:</s>|<\|(?:return|im_end|eot_id|end\w{0,20})\|>)\s*){1,4}\Z")
_BEGUN = re.compile(r"(?:<\|\w{0,20}\|>\w{0,20}){0,4}(?:<[^<>\s]{0,40}|\[/?[A-Z]{0,5}|◁/?[a-z]{0,5})?\Z")
"""What may become a tag."""


def apart(text: str) -> tuple[str, str]:
    """What is thought in a text, and what is said.

    >>> apart("The hall? Yes.</think>In the hall.")
    ('The hall? Yes.', 'In the hall.')
    """
    thoughts: list[str] = []
    said: list[str] = []
    at, inside, is_first = 0, False, True
    for tag in _TAG.finditer(text):
        opens = bool(tag["opens"] or tag["midway"])
        if is_first and tag["midway"]:  # among words
            continue
        if inside == opens and not is_first:  # opened twice, or closed twice
            continue
        (said if opens else thoughts).append(text[at : tag.start()])
        at, inside, is_first = tag.end(), opens, False
    rest = _END.sub("", text[at:])
    if is_first:
        return "", rest
    (thoughts if inside else said).append(rest)
    return "\n\n".join(filter(None, map(str.strip, thoughts))), "".join(said).strip()


def opening(prompt: str) -> str:
    """What a reply lacks at its head when its prompt ends in an opening tag; else nothing.

    >>> opening("<assistant><think>\\n"), opening("<think></think>")
    ('<think>', '')
    """
    return "<think>" if _BEHIND_PROMPT.search(prompt) else ""


def opened_before(text: str) -> bool:
    """Whether a text ends thoughts that nothing in it began."""
    tag = _TAG.search(text)
    return tag is not None and not (tag["opens"] or tag["midway"])


def mended(text: str) -> str:
    """Text that every encoder reads: halves of a character that came apart are joined, lone ones and NUL
    replaced.

    >>> mended("\\ud83d\\ude00 a\\udc00\\0") == "\\U0001f600 a\\ufffd\\ufffd"
    True
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


class Draft:
    """What has come so far; a client that asks again begins anew."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._thought: list[str] = []

    def add(self, said: str, thought: str = "") -> None:
        """The next piece."""
        self._said.append(said)
        self._thought.append(thought)

    def clear(self) -> None:
        """Forgets what came."""
        self._said.clear()
        self._thought.clear()

    @property
    def raw(self) -> str:
        """All of it, as it came."""
        return mended("".join([*self._thought, *self._said]))

    @property
    def text(self) -> str:
        """What is said."""
        return self.parts(finished=False)[1]

    @property
    def thoughts(self) -> str:
        """What is thought."""
        return self.parts(finished=False)[0]

    def parts(self, *, finished: bool) -> tuple[str, str]:
        """Thoughts and text; before the end without a tag that has only begun."""
        said = mended("".join(self._said))
        in_text, text = apart(said if finished else _BEGUN.sub("", said))
        own = mended("".join(self._thought)).strip()
        return "\n\n".join(filter(None, (own, in_text))), text
