"""The words of a chunk that count, in the sentence around them.

Around a place where there is one, else the sentence that holds most of the question's words. A cell of a
table stands whole, with its row's and its column's head. Marks are drawn and lines joined, as in
core.ingest.prose; what is marked is whole, and only what stands around it is cut, at words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from core.base.events import StepTaken
from core.base.types import DocumentKind, Workspace
from core.corpus.words import located
from core.ingest.prose import Prose, plain
from core.ingest.sentences import iter_sentences

CARD = 160
"""Characters around the mark in the card of a choice."""
MOST = 280
"""Characters that are shown around the mark, where nothing else is said."""
LONGEST_MARK = 2_000
"""Characters of what is marked, at most: a word may be a megabyte."""
_READ = 20_000
"""Characters of a chunk whose sentences are looked at."""
_MOST_SENTENCES = 200
_HEAD = 20_000
"""Characters before a row in which its table's head is looked for."""
_NUMBERING = frozenset(["", "#", "no", "no.", "nr", "nr.", "rank", "n°", "№"])
"""Heads of a first column that numbers the rows, and names none."""
_LEADING = re.compile(r"(?:#{1,6} [^\n]*\n\s*)+(?=\S)")
"""Headings that run into a sentence."""
_HEADING = re.compile(r"#{1,6} [^\n]*\n?")
_CELL = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[\s:|-]*")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is shown of a chunk: its telling words with what stands around them."""

    before: str
    mark: str
    """Empty where no words stand out."""
    after: str

    def __str__(self) -> str:
        return f"{self.before}{self.mark}{self.after}"


@dataclass(frozen=True, slots=True)
class ChunkInPlace:
    """A chunk, text[start:end], in what is known of its document."""

    text: str
    start: int
    end: int
    kind: DocumentKind = "markdown"

    @property
    def own(self) -> str:
        return self.text[self.start : self.end]


def passage_in(workspace: Workspace, chunk_id: int) -> ChunkInPlace:
    """A chunk in its document."""
    chunk = workspace[chunk_id]
    document = workspace.documents[chunk.document]
    return ChunkInPlace(document.text, chunk.start, chunk.end, document.kind)


def alone(text: str) -> ChunkInPlace:
    """A chunk of which only its text is known."""
    return ChunkInPlace(text, 0, len(text))


def choice_in(workspace: Workspace | None, step: StepTaken) -> ChunkInPlace:
    """A choice in its document, where that is known and has it as the run did."""
    if workspace is None or (shown := passage_in(workspace, step.chunk_id)).own != step.text:
        return alone(step.text)
    return shown


def quoted(
    passage: ChunkInPlace,
    place: tuple[int, int] | None = None,
    words: Sequence[str] = (),
    *,
    most: int = MOST,
    told: Collection[str] = (),
) -> Excerpt:
    """The sentence around `place`, which counts from where the chunk begins; without one, the sentence with
    most of the `words`, the longest of them marked that was not `told`. `most`: characters around the mark.

    >>> str(quoted(alone("It rained. Ruth set the blanket down. Bo slept."), None, ["blanket"]))
    'Ruth set the blanket down.'
    >>> table = "| name | built |\\n| --- | --- |\\n| Old mill | 1822 |"
    >>> str(quoted(alone(table), (table.index("1822"), len(table) - 2)))
    'Old mill · built: 1822'
    """
    sentences, heads = _sentences(passage), ""
    if place is None:
        sentence = _best(passage.text, sentences, words)
        mark = _telling(passage.text, *sentence, words, told)
    else:
        mark = passage.start + place[0], min(passage.start + place[1], passage.end)
        first = max((start for start, _ in sentences if start <= mark[0]), default=passage.start)
        last = min((end for _, end in sentences if end >= mark[1]), default=passage.end)
        sentence = max(first, mark[0] - 4 * most), min(max(last, mark[1]), mark[1] + 4 * most)
        if (cell := _cell(passage.text, *mark)) is not None:
            heads, *inside = cell
            sentence = max(inside[0], mark[0] - 4 * most), min(inside[1], mark[1] + 4 * most)
    if mark is None:
        return Excerpt(_cut_end(_one_line(passage, *sentence), most), "", "")
    before, said, after = (
        _one_line(passage, *part) for part in ((sentence[0], mark[0]), mark, (mark[1], sentence[1]))
    )
    excerpt = _around(before, said[:LONGEST_MARK], after, most)
    return replace(excerpt, before=_cut_end(heads, most) + excerpt.before)


def rendered(passage: ChunkInPlace, place: tuple[int, int]) -> str:
    """What a place of a chunk reads as: without marks of Markdown and what was deleted, in one line.

    >>> rendered(alone("about ~~900~~1150 *pounds*"), (6, 26))
    '1150 pounds'
    """
    start = passage.start + place[0]
    return _one_line(passage, start, min(passage.start + place[1], start + LONGEST_MARK)).strip()


def place_of(words: str, text: str) -> tuple[int, int] | None:
    """Where words stand in a text first, none of them within a longer one.

    >>> place_of("mill", "The miller went to the Mill.")
    (23, 27)
    """
    word = re.escape(words.strip())
    match = re.search(rf"(?<!\w){word}(?!\w)", text, re.IGNORECASE) if word else None
    return None if match is None else match.span()


def one_line(text: str) -> str:
    """A chunk as one line without headings, table rules and list marks; as it is where that leaves none."""
    return " ".join(plain(text).replace("|", " ").replace("•", " ").split())


def _sentences(passage: ChunkInPlace) -> list[tuple[int, int]]:
    """Of the chunk, in places of its document; a heading is none where there is anything else."""
    read = passage.text[passage.start : min(passage.end, passage.start + _READ)]
    spans = []
    for first, last in islice(iter_sentences(read), _MOST_SENTENCES):
        start, end = passage.start + first, passage.start + last
        headings = _LEADING.match(passage.text, start, end)
        spans.append((headings.end() if headings else start, end))
    said = [
        (start, end)
        for start, end in spans
        if not _HEADING.fullmatch(passage.text, start, end) and not _is_rule(passage.text[start:end])
    ]
    return said or spans or [(passage.start, passage.end)]


def _is_rule(line: str) -> bool:
    return "-" in line and _RULE.fullmatch(line) is not None


def _best(text: str, sentences: Sequence[tuple[int, int]], words: Sequence[str]) -> tuple[int, int]:
    """The first sentence with most of the words, long ones and those that few have counting more."""
    held = {span: {word for _, _, own in located(text[slice(*span)]) for word in own} for span in sentences}
    scores = dict.fromkeys(sentences, 0.0)
    for word in dict.fromkeys(words):
        holding = [span for span in sentences if word in held[span]]
        for span in holding:
            scores[span] += len(word) / len(holding)
    return max(sentences, key=lambda span: scores[span])


def _telling(
    text: str, start: int, end: int, words: Sequence[str], told: Collection[str]
) -> tuple[int, int] | None:
    """Where the longest of the words stands that was not told, as a whole word."""
    new = set(words).difference(told)
    marks = [
        (max(map(len, shared)), -at, behind)
        for at, behind, own in located(text[start:end])
        if (shared := new.intersection(own))
    ]
    if not marks:
        return None
    _, at, behind = max(marks)
    return start - at, start + behind


def _cell(text: str, start: int, end: int) -> tuple[str, int, int] | None:
    """The heads of a cell's row and column, "Old mill · built: ", and where the cell is; None for what is in
    no row of a table.
    """
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    row = text[first : len(text) if last < 0 else last]
    if not row.lstrip().startswith("|") or "\n" in row or len(row) > _READ:
        return None
    offset = len(row) - len(row.lstrip()) + 1
    borders = [border.start() for border in _CELL.finditer(row, offset)]
    column = sum(border < start - first for border in borders)
    lines = text[max(0, first - _HEAD) : first].splitlines()
    own = list(takewhile(lambda line: line.lstrip().startswith("|"), reversed(lines)))
    rule = next((at for at, line in enumerate(own) if _is_rule(line)), None)
    head = _cells(own[rule + 1]) if rule is not None and rule + 1 < len(own) else []
    cells = _cells(row)
    naming = int(bool(head) and head[0].casefold() in _NUMBERING and column > 1)
    of_row = cells[naming] if 0 < column < len(cells) else ""
    of_column = head[column] if column < len(head) else ""
    words = " · ".join(filter(None, (of_row, of_column)))
    cell_start = first + [offset - 1, *borders][column] + 1
    inside = text[cell_start : first + [*borders, len(row)][column]]
    cell_start += len(inside) - len(inside.lstrip())
    return f"{words}: " if words else "", min(cell_start, start), max(cell_start + len(inside.strip()), end)


def _cells(row: str) -> list[str]:
    """What the cells of a row read as."""
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [_one_line(alone(cell), 0, len(cell)).strip() for cell in _CELL.split(inner)]


def _one_line(passage: ChunkInPlace, start: int, end: int) -> str:
    """A slice of a document as one line, the blanks at its ends as one each."""
    if start >= end:
        return ""
    around = max(0, start - _CONTEXT), min(len(passage.text), end + _CONTEXT)
    prose = Prose(passage.text, *around, "markdown" if passage.kind == "html" else passage.kind)
    words = "".join(
        piece.text
        for piece in prose.words(start, end)
        if not any(element.tag == "del" for element in piece.elements)
    )
    return re.sub(r"\s+", " ", words.replace("•", " "))


_CONTEXT = 400
"""Characters on either side in which a mark that opens before a slice, or closes behind it, is looked for."""


def _around(before: str, mark: str, after: str, most: int) -> Excerpt:
    """What stands before and behind, together at most so long; a third of it before."""
    before, after = before.lstrip(), after.rstrip()
    if len(before) + len(after) > most:
        if (cut := len(before) - most // 3) > 0:
            space = before.find(" ", cut, cut + 21)
            before = "… " + before[cut if space < 0 else space + 1 :]
        after = _cut_end(after, max(most - len(before), most // 2))
    return Excerpt(before, mark, after)


def _cut_end(line: str, most: int) -> str:
    """The beginning of a line, whole words where it is cut."""
    if len(line) <= most:
        return line
    cut = line.rfind(" ", 0, most)
    return line[: cut if cut > most // 2 else most].rstrip() + " …"
