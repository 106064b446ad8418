"""The answer that a run ends in."""

from __future__ import annotations

from collections.abc import Callable

from core.answer.cited import SUPPORT_THRESHOLD, Citation, CitedAnswer, CitedSentence
from core.answer.evidence import EvidenceAnswer
from core.answer.protocol import State
from core.base.types import Chunk
from core.ingest.prose import unmarked
from core.views.draw.nodes import Node, chunk_link, h, sends, tip
from core.views.draw.words import shorten
from core.views.quotes import LONGEST_MARK, MOST, ChunkInPlace, Excerpt, quoted, rendered
from core.views.story import Verdict, state_words, verdict_on
from core.views.story import sure as sure_words

CONFIDENCE = (
    "Of the answers given with this confidence, about so many in a hundred share at least half of their words"
    " with the right one; measured on questions kept out of its training"
)
BY_READER = (
    "The extractive reader that ships with the app: it points at words of the evidence and knows nothing else"
)
COMPARED = "Right: at least half of the words are those of the known answer"
WHY: dict[State, str] = {
    "answer": CONFIDENCE,
    "guess": (
        "Likelier than any other words, and not likely enough to be relied on: about so many in a hundred of"
        " such guesses are right"
    ),
    "unsure": (
        "What was found seems to answer this, but which words do is unclear: of the likeliest, about a third"
        " are right"
    ),
    "absent": "Nothing that was found is likely enough to answer this; what is nearest stands here",
    "passages": (
        "The reader points at words of the text. A yes or no, a count or a comparison of its own is beyond"
        " it; a language model can give one"
    ),
}
"""What a state means."""
LONGEST = 400
"""Characters of a language model's sentence that are shown."""
_MOST_THOUGHTS = 20_000
"""Characters of thoughts that are shown, the last ones."""
_AS_IT_THINKS = 2_000
"""The same while they come."""
_IN_COLUMN = 150
"""Characters around what is marked, in a column of Compare."""
PassageOf = Callable[[int], ChunkInPlace]
"""A chunk by its id."""


def answer(
    result: EvidenceAnswer | None, passage: PassageOf | None = None, known_answer: str = ""
) -> list[Node]:
    """What was made of the evidence: its state, the answer, and the sentence that counts with its chunk;
    nothing before a run has ended. `passage`: None where texts stay out.
    """
    if result is None:
        return []
    head = state_words(result.state, result.confidence, result.asks)
    quote = _quote(result, passage, MOST)
    text = _said(result, passage)
    in_quote = quote is not None and result.place is not None
    headline = text is not None and (result.state == "answer" or not in_quote)
    nearest = result.state in ("absent", "passages") and quote is not None
    by = tip("span.qx-mut", BY_READER, f"by {result.by}, from the evidence alone")
    return [
        h(
            f"section.qx-answer.qx-is-{result.state}",
            {"aria-label": "Answer"},
            tip("h3", WHY[result.state], head),
            h("p.qx-answer-text", text) if headline else None,
            h("p.qx-sm.qx-mut", "Nearest to it among what was found:") if nearest else None,
            h("blockquote.qx-answer-passage", *marked(quote)) if quote is not None else None,
            verdict_line(verdict_on(result.told_text, known_answer), known_answer),
            h("p.qx-sm", *_facts(result), by),
        )
    ]


def marked(quote: Excerpt, tag: str = "mark.qx-answer-mark") -> list[Node]:
    """A sentence with its words that count."""
    return [part for part in (quote.before, h(tag, quote.mark) if quote.mark else "", quote.after) if part]


def verdict_line(verdict: Verdict | None, known_answer: str, tag: str = "p") -> Node | None:
    """Whether an answer is right, with the known answer where it is not; None where nobody knows."""
    if verdict is None:
        return None
    if verdict == "right":
        return tip(f"{tag}.qx-sm.qx-judged.qx-right", COMPARED, "✓ right")
    sign = "✗ wrong" if verdict == "wrong" else "no answer"
    return tip(f"{tag}.qx-sm.qx-judged.qx-wrong", COMPARED, f"{sign} · known answer: {known_answer}")


def working() -> list[Node]:
    """While the evidence is read."""
    status = h("p.qx-mut", {"role": "status"}, "Reading the evidence…")
    return [h("section.qx-answer", {"aria-label": "Answer"}, h("h3", "Answer"), status)]


UNSUPPORTED = "The reader does not find this sentence borne out by any chunk that it cites"
UNCITED = "Every sentence was to name the chunks behind it; this one names none that there is"
CHECKED = (
    "Each citation is checked by how much of its sentence stands in the chunk; that is agreement of words, no"
    " proof"
)
_OF_LLM = {"aria-label": "Answer of the language model"}


def asking(llm: str, text: str = "", thought: str = "") -> list[Node]:
    """While a language model answers: what came so far."""
    line = h("p.qx-mut", {"role": "status"}, "Thinking…" if thought else "Asking…")
    if text:
        line = h("p.qx-answer-cited", shorten(unmarked(text), LONGEST))
    folded = thoughts(thought[-_AS_IT_THINKS:])
    return [h("section.qx-answer", _OF_LLM, h("h3", f"Answer of {llm}"), line, *folded)]


def thoughts(thought: str) -> list[Node]:
    """What a model thought, folded; nothing where it didn't think aloud."""
    words = h("pre.qx-pre", {"tabindex": "0"}, thought[-_MOST_THOUGHTS:])
    return [h("details.qx-sm.qx-cost", h("summary", "What it thought"), words)] if thought else []


def cited(cited_answer: CitedAnswer | None) -> list[Node]:
    """A language model's answer by sentence with the chunks cited; what the reader lacks there is marked."""
    if cited_answer is None:
        return []
    sentences = [_sentence(sentence) for sentence in cited_answer.sentences]
    words = sentences or [h("p.qx-answer-text.qx-answer-none", "No answer in the evidence.")]
    doubts = []
    if refused := ", ".join(map(str, cited_answer.refused)):
        passages = "passage" if len(cited_answer.refused) == 1 else "passages"
        doubts.append(f"cites {passages} {refused}, which it was not given")
    if cited_answer.cut:
        n_written = cited_answer.cost.completion_tokens
        doubts.append(f"was cut off after {n_written:,} tokens; allow longer replies")
    noted = [h("p", h("span.qx-sm.qx-unsupported", doubt)) for doubt in doubts]
    tokens = cited_answer.cost.prompt_tokens + cited_answer.cost.completion_tokens
    took = f"{tokens:,} tokens · {cited_answer.cost.milliseconds:,.0f} ms"
    cost = tip("p.qx-sm.qx-mut", CHECKED, f"citations checked by the reader · {took}")
    folded = thoughts(cited_answer.thoughts)
    head = h("h3", f"Answer of {cited_answer.llm}")
    return [h("section.qx-answer", _OF_LLM, head, *words, *noted, *folded, cost)]


def _sentence(sentence: CitedSentence) -> Node:
    nodes: list[Node] = [shorten(unmarked(sentence.text), LONGEST)]
    for one in sentence.citations:
        nodes += [" ", _citation(one)]
    if not sentence.supported:
        words, why = ("not borne out", UNSUPPORTED) if sentence.citations else ("cites no chunk", UNCITED)
        nodes += [" ", tip("span.qx-sm.qx-unsupported", why, words)]
    return h("p.qx-answer-cited", *nodes)


def _citation(one: Citation) -> Node:
    """A chunk that a sentence rests on; crossed where it doesn't bear the sentence out."""
    share = f"{100 * one.support:.0f} % of what the sentence says stands in this chunk"
    kind, doubts, title = "qx-link.qx-sm", [], f"{share}: it bears the sentence out"
    if not one.supported:
        kind, doubts = f"{kind}.qx-crossed", [h("span", {"aria-hidden": "true"}, " ✗")]
        doubts.append(h("span.qx-unseen", ", does not bear this out"))
        title = f"{share}, less than {100 * SUPPORT_THRESHOLD:.0f} %: it does not bear the sentence out"
    return sends(kind, "open", one.chunk_id, f"chunk {one.chunk_id:,}", *doubts, title=title)


def in_column(
    result: EvidenceAnswer | None, at: int, known_answer: str = "", passage: PassageOf | None = None
) -> Node | None:
    """The `at`-th Compare column's answer; None where there is none. `passage`: as in `answer`."""
    if result is None:
        return None
    quote, text = _quote(result, passage, _IN_COLUMN), _said(result, passage)
    links = [
        sends("qx-link.qx-sm", "show", f"{i} {at}", f"chunk {i:,}", data_same=str(i))
        for i in _shown_chunks(result)
    ]
    verdict = verdict_line(verdict_on(result.told_text, known_answer), known_answer, "span")
    words = sure = None
    if result.state == "answer" and result.confidence is not None:
        sure = tip("span.qx-mut.qx-sm", CONFIDENCE, sure_words(result.confidence))
    if result.state != "answer":
        head = state_words(result.state, result.confidence, result.asks)
        words = tip("span.qx-state.qx-sm", WHY[result.state], head)
    in_quote = words is not None and quote is not None and result.place is not None
    headline = h("strong", text) if text is not None and not in_quote else None
    shown = None if quote is None else h("span.qx-column-quote.qx-sm", {"dir": "auto"}, *marked(quote))
    return h(f"div.qx-column-answer.qx-is-{result.state}", words, headline, sure, verdict, *links, shown)


def answer_place(chunk: Chunk, result: EvidenceAnswer | None) -> tuple[int, int] | None:
    """Where in its document's text a chunk holds what answers, or bears on the question, if it does."""
    if result is None or result.state == "absent":
        return None
    place = result.place_in(chunk.chunk_id)
    return None if place is None else (chunk.start + place[0], chunk.start + place[1])


def _said(result: EvidenceAnswer, passage: PassageOf | None) -> str | None:
    """The answer or guess as its document means it, whole; None where there is none."""
    if not result.told_text:
        return None
    if passage is not None and result.place is not None:
        return rendered(passage(result.citations[0]), result.place) or result.text
    return shorten(result.told_text, LONGEST_MARK)


def _quote(result: EvidenceAnswer, passage: PassageOf | None, most: int) -> Excerpt | None:
    """The sentence that counts; None without a text or a place."""
    chunk_id = result.shown_chunk
    place = None if chunk_id is None else result.place_in(chunk_id)
    if passage is None or chunk_id is None or place is None:
        return None
    return quoted(passage(chunk_id), place, most=most)


def _shown_chunks(result: EvidenceAnswer) -> tuple[int, ...]:
    """Those that the answer rests on, or the one worth reading."""
    return result.citations or (() if result.passage is None else (result.passage,))


def _facts(result: EvidenceAnswer) -> list[Node]:
    facts: list[Node] = []
    if result.confidence is not None and result.state == "answer":
        facts += [tip("span.qx-kv", CONFIDENCE, sure_words(result.confidence)), " · "]
    for i in _shown_chunks(result):
        facts += [chunk_link(i), " · "]
    return facts
