"""Answers of a language model over chunks, with checked citations.

Every sentence names the chunks that it cites, and the reader checks every citation. A model gets the evidence
as numbered passages between marks that no chunk can forge, so that "ignore your instructions" in a chunk
stays a quotation. Whatever the model then does, the result is an answer whose citations are marked one by
one, no answer where the model says so in the words that it was given, or an error: a number that stands for
no chunk is refused and listed, and a sentence is supported only if the reader finds that one of its chunks
bears it out. The prompts are prompts/cited-*.txt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from core.answer.protocol import Reader
from core.base.errors import quoted
from core.ingest.sentences import split_sentences
from core.llm.draft import Draft
from core.llm.prompts import Marks, template
from core.llm.protocol import Cost, Llm, LlmError, Message, NotAnswered, Sampling, never

SUPPORT_THRESHOLD = 0.5
"""Reader's support from which on a chunk counts as bearing a sentence out."""
MAX_ANSWER_CHARACTERS = 8_000
"""Of a reply: a longer one is no answer of a few sentences, and would keep the reader busy for long."""
_REPLY_TOKENS = 400
_MAX_THOUGHTS = 20_000
"""Characters of thoughts that are kept, the last ones."""
_NO_ANSWER = re.compile(r"\W*(?:answer\W+)?no answer(?! *\w)", re.IGNORECASE)
"""At the head of a reply; what stands behind a stop explains it."""
_WRAPPED = re.compile(r"\A<answer>|</answer>\Z", re.IGNORECASE)
_MARKS = Marks("passage", "question", "metadata")
_NUMBERS = r"(?:\^|(?i:passages?)\s{1,3})?\d{1,4}(?:\s{0,3}[-–]\s{0,3}\d{1,4})?"
_LISTED = rf"\s{{0,3}}{_NUMBERS}(?:\s{{0,3}}(?:[,;&]|and\b)\s{{0,3}}{_NUMBERS}){{0,60}}\s{{0,3}}"
_CITATION = re.compile(rf"\[{_LISTED}\]|【{_LISTED}(?:†[^【】\n]{{0,60}})?】")
_ONE = rf"(?:{_CITATION.pattern}|\*\*(?:{_CITATION.pattern})\*\*)"
_CITATIONS = rf"(?>{_ONE}(?:\s{{0,3}}(?:[,;&]|and\b)?\s{{0,3}}{_ONE}){{0,60}})"
"""What stands side by side; atomic, so that none is tried in several ways."""
_NO_CITATION = re.compile(rf"`(?!{_CITATIONS}`)[^`\n]{{1,300}}`|\w\[0\]")
"""Code, and the index of a list."""
_INDEX = re.compile(r"(?<!\w)(?:[a-z]|(?=[A-Za-z\d]{0,40}_)\w{1,60})(?:\[\d{1,4}\])++")
"""The index of a list, where citations stand apart from words: x[3], max_len[2]."""
_APART = re.compile(rf"(?<![\w\]】]){_CITATIONS}")
_BEHIND_STOP = re.compile(
    rf"""(?P<stop>[.!?…。！？]{{1,5}}["'”’»)*_]{{0,3}}?)(?P<marks>{_CITATIONS})(?P<closers>[,;:"'”’»)*_]{{0,3}})"""
)
_LINE_END = re.compile(rf"(?<=\S)([ \t]?{_CITATIONS}[ \t]{{0,9}}\n)(?=[^\W\d_a-z])")
_HEAD = re.compile(
    rf"(?P<item>(?:(?:[-*+•]|\d{{1,3}}[.)])[ ])?){_CITATIONS}:?(?P<blank>\s{{0,9}}+)(?![a-zß-ÿ])"
)
"""Citations before the words of a sentence. Where a small letter follows, they are a word of it."""
_SOURCE = r"as|based\ on|but|by|from|in|of|passages?|per|see|that|to|while|with"
_SAYS = r"(?:says?|said|states?|tells?|notes?|mentions?|describes?|reports?|shows?|adds?)\b"
_SEE = r"(?:see|see\ also|cf\.?|from|sources?|passages?):?[ ]"
_SHOWN = re.compile(
    rf"""(?P<word>\b(?i:{_SOURCE})[ ]{_CITATIONS}
             | [ ]?{_CITATIONS}(?=[ ]{_SAYS})
             | ^{_CITATIONS}(?=[ ][a-zß-ÿ]))
      | [ ]?(?:`{_CITATIONS}` | \((?i:{_SEE})?{_CITATIONS}\) | {_CITATIONS})(?:[ ](?=[.,;:!?](?!\w)))?""",
    re.VERBOSE,
)
"""Citations with what goes with them, or as a word of a sentence."""
_BRACKET = "\ue000"
"""Stands for [ where that begins no citation."""
_AROUND = 40
"""Characters of a sentence that say whether a stop ends it."""
_WIDEST_RANGE = 50
"""Passages that a citation such as [1-9] may name."""


@dataclass(frozen=True, slots=True)
class Citation:
    """One chunk that a sentence rests on, as it says."""

    chunk_id: int
    support: float
    """The reader's, 0 to 1."""
    supported: bool
    """Whether that reaches SUPPORT_THRESHOLD."""


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence without its citation marks."""

    text: str
    citations: tuple[Citation, ...]

    @property
    def supported(self) -> bool:
        """Whether any chunk that it cites bears it out; never so for a sentence that cites none."""
        return any(citation.supported for citation in self.citations)


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """What a language model answered."""

    text: str
    """As it came, citation marks included; empty when the passages hold no answer."""
    sentences: tuple[CitedSentence, ...]
    refused: tuple[int, ...]
    """Numbers that were cited and stand for no chunk."""
    llm: str
    cost: Cost
    cut: bool = False
    """Whether it ended because its tokens did."""
    thoughts: str = ""

    @property
    def supported(self) -> bool:
        """Whether every sentence is; false without an answer."""
        return bool(self.sentences) and all(sentence.supported for sentence in self.sentences)

    @property
    def chunk_ids(self) -> tuple[int, ...]:
        """Every chunk cited, in order, none twice."""
        return _once(citation.chunk_id for sentence in self.sentences for citation in sentence.citations)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the log and the page."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any], chunk_ids: Collection[int]) -> CitedAnswer | None:
        """Inverse of `to_json`, hostile; None for anything but an answer that cites only these chunks."""
        try:
            answer = TypeAdapter(cls).validate_json(json.dumps(values), strict=True)
        except (ValueError, RecursionError):
            return None
        return answer if set(answer.chunk_ids) <= set(chunk_ids) else None


def cited_answer(
    question: str,
    chunks: Sequence[tuple[int, str]],
    llm: Llm,
    reader: Reader,
    *,
    metadata: Sequence[str] = (),
    draft: Draft | None = None,
    cancelled: Callable[[], bool] = never,
) -> CitedAnswer:
    """Asks `llm` over chunks, (chunk id, text) in the order in which they are numbered. No chunks: no answer,
    and nobody is asked. `metadata`: JSON-LD of the documents as text, which it may read and not cite.

    Raises LlmError, also for a refusal and a reply without a sentence, LlmCancelled.
    """
    if not chunks:
        return CitedAnswer("", (), (), llm.name, Cost())
    messages = cited_messages(question, [text for _, text in chunks], metadata)
    sampling = Sampling(max_tokens=llm.reply_tokens or _REPLY_TOKENS)
    reply = llm.chat(messages, sampling, draft=draft, cancelled=cancelled)
    text = _WRAPPED.sub("", reply.text.strip()).strip()
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise LlmError(
            f"{llm.name} answered with {len(text):,} characters, more than {MAX_ANSWER_CHARACTERS:,}; ask"
            " again, or choose another model"
        )
    thoughts = reply.thoughts[-_MAX_THOUGHTS:]
    if _NO_ANSWER.match(text) and not _CITATION.search(text):
        return CitedAnswer("", (), (), llm.name, reply.cost, reply.cut, thoughts)
    sentences, refused = checked(text, chunks, reader)
    if not sentences:
        raise NotAnswered(f"{llm.name} answered without a sentence{quoted(text)}; ask again", reply.cost)
    return CitedAnswer(text, sentences, refused, llm.name, reply.cost, reply.cut, thoughts)


def cited_messages(question: str, passages: Sequence[str], metadata: Sequence[str] = ()) -> list[Message]:
    """The conversation that asks for an answer with citations. metadata: see `cited_answer`."""
    pages = [_MARKS.quoted("metadata", text) for text in metadata if text]
    given = "\n".join([_MARKS.numbered("passage", passages), *pages])
    user = template(__package__, "cited-user").substitute(passages=given, question=_MARKS.plain(question))
    return [Message("system", template(__package__, "cited-system").template), Message("user", user)]


def checked(
    text: str, chunks: Sequence[tuple[int, str]], reader: Reader
) -> tuple[tuple[CitedSentence, ...], tuple[int, ...]]:
    """The sentences of an answer with their citations checked, and the numbers cited that stand for no chunk.

    `chunks`: (chunk id, text), numbered from 1 in this order.
    """
    sentences: list[CitedSentence] = []
    refused: list[int] = []
    for statement, numbers in cited_sentences(text):
        citations = []
        for number in numbers:
            if not 1 <= number <= len(chunks):
                refused.append(number)
                continue
            chunk_id, passage = chunks[number - 1]
            support = reader.support(statement, passage)
            citations.append(Citation(chunk_id, support, support >= SUPPORT_THRESHOLD))
        sentences.append(CitedSentence(statement, tuple(citations)))
    return tuple(sentences), _once(refused)


def cited_sentences(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """(sentence without marks, numbers it cites) in order. Marks that stand behind a sentence belong to it,
    but in a line that begins with some they belong to what follows.

    >>> cited_sentences("Anna hid it. [2] It lay there [1, 3-4].")
    [('Anna hid it.', (2,)), ('It lay there.', (1, 3, 4))]
    >>> cited_sentences("[1] Anna hid it. [2] As [3] says, it lay there.")
    [('Anna hid it.', (1,)), ('As [3] says, it lay there.', (2, 3))]
    """
    for words in (_INDEX, _NO_CITATION) if _APART.search(text) else (_NO_CITATION,):
        text = words.sub(lambda match: match.group().replace("[", _BRACKET), text)
    text = _BEHIND_STOP.sub(_before_stop, text)
    text = _LINE_END.sub(r"\1\n", text)
    sentences: list[tuple[str, tuple[int, ...]]] = []
    for start, end in split_sentences(text):
        sentence = said = text[start:end]
        if (head := _HEAD.match(sentence)) is not None:
            said = head["item"] + sentence[head.end() :]
            if sentences and not (_is_said(_statement(said)) and _leads(text, start)):
                sentences[-1] = (sentences[-1][0], _once((*sentences[-1][1], *_numbers(head.group()))))
                sentence = said
        statement = _statement(said)
        if _is_said(statement):
            sentences.append((statement.replace(_BRACKET, "["), _once(_numbers(sentence))))
    return sentences


def _before_stop(match: re.Match[str]) -> str:
    """Citations before the stop that they stand behind; behind it where an abbreviation goes on."""
    head = match.string[max(0, match.start() - _AROUND) : match.end("stop")] + match["closers"]
    behind = match.string[match.end() : match.end() + _AROUND].lstrip()
    ends = {end for _, end in split_sentences(f"{head} {behind}")}
    if match["stop"] == "." and len(head) not in ends and not behind[:1].islower():
        return f".{match['closers']} {match['marks']} "
    return f" {match['marks']}{match['stop']}{match['closers']} "


def _leads(text: str, start: int) -> bool:
    """Whether the line of a sentence begins with citations, and goes on."""
    line = _HEAD.match(text, text.rfind("\n", 0, start) + 1)
    return line is not None and "\n" not in line["blank"]


def _statement(sentence: str) -> str:
    """A sentence without its marks, but for those that are words of it."""
    line = " ".join(sentence.split())
    return _SHOWN.sub(
        lambda mark: mark["word"] or " " * line[mark.end() : mark.end() + 1].isalnum(), line
    ).strip()


def _is_said(statement: str) -> bool:
    return re.search(r"\w", _CITATION.sub("", statement)) is not None


def _numbers(text: str) -> Iterator[int]:
    """Every number that the marks in a text name."""
    for mark in _CITATION.findall(text):
        for first, last in re.findall(r"(\d+)(?:\s*[-–]\s*(\d+))?", mark.partition("†")[0]):
            yield from range(int(first), min(int(last or first), int(first) + _WIDEST_RANGE) + 1)


def _once(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(numbers))
