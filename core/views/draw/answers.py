"""The answer that a run ends in, as trees of plain data.

Pure functions. All text stays text (see core.views.draw.nodes).
"""

from __future__ import annotations

from collections.abc import Mapping

from core.answer.cited import SUPPORT_THRESHOLD, Citation, CitedAnswer, CitedSentence
from core.answer.evidence import EvidenceAnswer
from core.base.types import Chunk
from core.ingest.prose import plain
from core.views.draw.nodes import Node, chunk_link, h, sends, tip
from core.views.draw.words import shorten
from core.views.story import Verdict, verdict_on
from core.views.story import sure as sure_words

CONFIDENCE = (
    "Of the answers given with this confidence, about so many in a hundred share at least half of their words"
    " with the right one; measured on questions kept out of its training"
)
BY_READER = (
    "The extractive reader that ships with the app: it points at words of the evidence and knows nothing else"
)
COMPARED = "Right: at least half of the words are those of the known answer"
UNRELIABLE = (
    "The reader is not sure enough of what it would answer; this is the passage of the evidence in which an"
    " answer is likeliest"
)
LONGEST = 400
"""Characters of an answer that are shown."""


def answer(result: EvidenceAnswer | None, texts: Mapping[int, str], known_answer: str = "") -> list[Node]:
    """The answer with how sure it is and the chunk it stands in, or the best passage where it isn't reliable;
    nothing before a run has ended.

    `texts`: of the chunks of the evidence. `known_answer`: the known answer, empty where nobody knows it.
    """
    if result is None:
        return []
    by = tip("span.qx-mut", BY_READER, f"by {result.by}, from the evidence alone")
    return [
        h(
            "section.qx-answer",
            {"aria-label": "Answer"},
            h("h3", "Answer"),
            *_words(result, texts),
            verdict_line(verdict_on(result.reliable_text, known_answer), known_answer),
            h("p.qx-sm", *_facts(result), by),
        )
    ]


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


def asking(llm: str, text: str = "") -> list[Node]:
    """While a language model answers: what came so far."""
    line = h("p.qx-mut", {"role": "status"}, "Asking…")
    if text:
        line = h("p.qx-answer-cited", shorten(text, LONGEST))
    return [h("section.qx-answer", _OF_LLM, h("h3", f"Answer of {llm}"), line)]


def cited(cited_answer: CitedAnswer | None) -> list[Node]:
    """A language model's answer by sentence with the chunks cited; what the reader lacks there is marked."""
    if cited_answer is None:
        return []
    sentences = [_sentence(sentence) for sentence in cited_answer.sentences]
    words = sentences or [h("p.qx-answer-text.qx-answer-none", "No answer in the evidence.")]
    refused = ", ".join(map(str, cited_answer.refused))
    doubts = [f"cites passage {refused}, which it was not given"] if cited_answer.refused else []
    doubts += (
        [f"was cut off after {cited_answer.cost.completion_tokens:,} tokens"] if cited_answer.cut else []
    )
    noted = [h("p", h("span.qx-sm.qx-unsupported", doubt)) for doubt in doubts]
    tokens = cited_answer.cost.prompt_tokens + cited_answer.cost.completion_tokens
    took = f"{tokens:,} tokens · {cited_answer.cost.milliseconds:,.0f} ms"
    cost = tip("p.qx-sm.qx-mut", CHECKED, f"citations checked by the reader · {took}")
    return [h("section.qx-answer", _OF_LLM, h("h3", f"Answer of {cited_answer.llm}"), *words, *noted, cost)]


def _sentence(sentence: CitedSentence) -> Node:
    nodes: list[Node] = [_citation(one) for one in sentence.citations]
    if not sentence.supported:
        words, why = ("not borne out", UNSUPPORTED) if sentence.citations else ("cites no chunk", UNCITED)
        nodes.append(tip("span.qx-sm.qx-unsupported", why, words))
    return h(
        "p.qx-answer-cited",
        shorten(sentence.text, LONGEST),
        *(part for node in nodes for part in (" ", node)),
    )


def _citation(one: Citation) -> Node:
    """A chunk that a sentence rests on; crossed where it doesn't bear the sentence out."""
    share = f"{100 * one.support:.0f} % of what the sentence says stands in this chunk"
    name = f"chunk {one.chunk_id:,}"
    if one.supported:
        title = f"{share}: it bears the sentence out"
        return sends("qx-link.qx-sm", "open", one.chunk_id, name, title=title)
    doubt = h("span.qx-unseen", ", does not bear this out")
    cross = h("span", {"aria-hidden": "true"}, " ✗")
    title = f"{share}, less than {100 * SUPPORT_THRESHOLD:.0f} %: it does not bear the sentence out"
    return sends("qx-link.qx-sm.qx-crossed", "open", one.chunk_id, name, cross, doubt, title=title)


def in_column(result: EvidenceAnswer | None, at: int, known_answer: str = "") -> Node | None:
    """The `at`-th Compare column's answer; None where there is none. `known_answer`: empty if unknown."""
    if result is None:
        return None
    sure = None
    if result.confidence is not None and result.reliable_text:
        sure = tip("span.qx-mut.qx-sm", CONFIDENCE, sure_words(result.confidence))
    cited = [
        sends("qx-link.qx-sm", "show", f"{i} {at}", f"chunk {i:,}", data_same=str(i))
        for i in _shown_chunks(result)
    ]
    if not result.reliable:
        words = tip("span", UNRELIABLE, "no reliable answer")
    elif result.text:
        words = h("strong", shorten(result.text, LONGEST))
    else:
        words = h("span", "no answer in the evidence")
    verdict = verdict_line(verdict_on(result.reliable_text, known_answer), known_answer, "span")
    text_node = (
        words if result.reliable_text or verdict is None else None
    )  # the verdict says that there is none
    return h("p.qx-column-answer", text_node, sure, verdict, *cited)


def answer_place(chunk: Chunk, result: EvidenceAnswer | None) -> tuple[int, int] | None:
    """Where in its document's text a chunk holds the answer; None where it doesn't, or is not reliable."""
    if result is None or result.place is None or result.citations[0] != chunk.chunk_id or not result.reliable:
        return None
    start, end = result.place
    return chunk.start + start, chunk.start + end


def _words(result: EvidenceAnswer, texts: Mapping[int, str]) -> list[Node]:
    if not result.reliable:
        line = tip("p.qx-answer-text.qx-answer-none", UNRELIABLE, "No reliable answer.")
        passage = None if result.passage is None else texts.get(result.passage)
        if passage is None:
            return [line]
        likeliest = h("p.qx-sm.qx-mut", "An answer is likeliest in this passage, which may hold none:")
        return [line, likeliest, h("blockquote.qx-answer-passage", shorten(plain(passage), LONGEST))]
    if not result.text:
        return [h("p.qx-answer-text.qx-answer-none", "No answer in the evidence.")]
    return [h("p.qx-answer-text", shorten(result.text, LONGEST))]


def _shown_chunks(result: EvidenceAnswer) -> tuple[int, ...]:
    """Those that the answer rests on, or the one worth reading where it isn't reliable."""
    if result.reliable or result.passage is None:
        return result.citations
    return (result.passage,)


def _facts(result: EvidenceAnswer) -> list[Node]:
    sure: list[Node] = []
    if result.confidence is not None:
        sure = [tip("span.qx-kv", CONFIDENCE, sure_words(result.confidence)), " · "]
    return [*sure, *(part for i in _shown_chunks(result) for part in (chunk_link(i), " · "))]
