"""The log as trees of plain data, a function a panel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta

from app.pages.widgets.notices import notice
from app.pages.widgets.sharing import page_button
from app.services.experiments import MAX_CURVES, Charted
from core.answer.evidence import EvidenceAnswer
from core.base.config import RESRAG, RESRAG_LLM, SETS
from core.base.events import StepTaken
from core.corpus.words import content_words
from core.methods.registry import facts_of
from core.methods.sparc.retriever import SPARC
from core.runs.again.replay import Replay
from core.runs.export.logged import score_name, settings_of, why_ended
from core.runs.log import LoggedRun, RunPage, RunRow
from core.runs.log.records import RunCurve, known_answer_of, support_of
from core.runs.log.sql import MAX_ROWS, SqlResult
from core.views.draw.answers import CONFIDENCE, marked, verdict_line
from core.views.draw.nodes import Node, act, h, link_to, sends, tip
from core.views.draw.tables import PAGE, fields, on_page, pager, sorted_by, table, table_row
from core.views.draw.words import (
    EXPLAIN,
    counted,
    duration,
    figure_title,
    shorten,
    shorten_between,
    step_class,
    two_ends,
)
from core.views.ending import review_sentence
from core.views.quotes import CARD, LONGEST_MARK, alone, quoted
from core.views.story import state_words, verdict_on

COMPARED_WITHIN = timedelta(minutes=3)
"""Between the beginnings of two columns of one comparison."""
SHARING = (
    "Whoever has the link can then open this run: the question, the whole text of its documents, every choice"
    " and its numbers, and the answer. Your other runs stay yours. Only deleting the run takes this back."
)
ADDRESS = "The address of this run; it stays the same"
CONTINUE = (
    "Opens the run in Explore after this step: change a setting or choose a chunk there, and a child run goes"
    " on from here"
)
DELETING = (
    "The run goes for good, with the texts that no other run needs: this can't be undone. Runs that were"
    " continued from it stay."
)
PREVIEW = "Asked while the text was still embedded: it searched the chunks that were there, not all"
SCORE = "Score by the branch that found this chunk first: BM25, inner product or Q, each on its own scale"
MOST_MISSING = 20
"""Passages that are listed."""
EMPTY = "No runs yet. Ask a question in Explore, or use python -m core trace --log."
NO_MATCH = "No run matches. Change the filters, or clear them."

RunColumn = tuple[str, Callable[[RunRow], Node]]
"""Of the list of runs: the sentence at its head, and its cell."""


def _outcome(row: RunRow) -> Node:
    if row.n_support is None:
        return ""
    hit = bool(row.hit)
    return h("span.qx-mark" + ".qx-hit" * hit, f"{row.n_found} of {row.n_support}" + " ✓" * hit)


def _status(row: RunRow) -> Node:
    kinds = {"failed": ".qx-chip-bad", "running": ".qx-chip-live", "cancelled": ".qx-mut"}
    chip = h("span.qx-chip" + kinds.get(row.status, ""), {"title": row.message or ""}, row.status)
    return h("span", chip, " ", h("span.qx-mark", {"title": PREVIEW}, "preview")) if row.preview else chip


def _answer(row: RunRow) -> Node:
    """What was answered, and whether it is right where that is known."""
    if row.answer is None:
        return ""
    answer = _cut(row.answer, 24) if row.answer else h("span.qx-mut", "no answer")
    match verdict_on(row.answer, row.known_answer):
        case "right":
            return h("span", answer, " ", h("span.qx-mark.qx-hit", {"title": ""}, "✓ right"))
        case "wrong":
            title = f"Known answer: {row.known_answer}"
            return h("span", answer, " ", h("span.qx-mark.qx-warn", {"title": title}, "✗ wrong"))
    return answer


def _sure(row: RunRow) -> str:
    return "" if row.confidence is None else f"{100 * row.confidence:.0f} %"


def _took(row: RunRow) -> str:
    seconds = (row.finished_at - row.created_at).total_seconds() if row.finished_at else None
    return "" if seconds is None else f"{1000 * seconds:,.0f} ms" if seconds < 1 else duration(seconds)


def _made(row: RunRow) -> Node:
    begun = row.created_at.astimezone()
    year = h("span.qx-year", f"{begun:%Y-}")
    return h("span", {"title": f"{begun:%Y-%m-%d %H:%M}"}, year, f"{begun:%m-%d %H:%M}")


def _titles(row: RunRow) -> Node:
    """In the width that the page has for them."""
    words = ", ".join(row.titles)[:2_000]
    return h("div.qx-titles", {"title": words}, words)


COLUMNS: dict[str, RunColumn] = {
    "method": ("How chunks were chosen", lambda row: facts_of(row.method).label),
    "agent": ("The checkpoint whose vectors were searched", lambda row: _cut(row.checkpoint, 20)),
    "answer": ("What was answered, and whether it is right where that is known", _answer),
    "sure": (CONFIDENCE, _sure),
    "documents": ("What was searched", _titles),
    "status": ("Complete, cancelled, failed, or still running", _status),
    "steps": ("Chunks that were chosen", lambda row: str(row.n_steps)),
    "support": ("Support chunks among the chosen ones, where the question is labelled", _outcome),
    "made": ("When the run began", _made),
    "stopped by": ("Why the run stopped", lambda row: row.stop_reason or ""),
    "chunks": ("Chunks that were searched", lambda row: f"{row.n_chunks:,}"),
    "seed": ("Seed of the sampling", lambda row: str(row.seed)),
    "took": ("From beginning to end, pauses of the person included", _took),
    "child of": ("The run that it was continued from", lambda row: (row.parent_run_id or "")[:8]),
    "shared": ("Whether anybody with the link may open it", lambda row: "shared" * row.shared),
    "id": ("Beginning of the run's id", lambda row: row.run_id[:8]),
}
"""By the name under which a person chooses them."""
USUAL_COLUMNS = ("method", "agent", "answer", "sure", "documents", "status", "steps", "support", "made")


def _cut(text: str, most: int) -> Node:
    return text if len(text) <= most else h("span", {"title": text[:2_000]}, shorten(text, most))


def run_list(
    page: RunPage,
    number: int,
    columns: Collection[str],
    selected: Sequence[str],
    opened: str,
    *,
    filtered: bool,
    sort: str = "made",
    descends: bool = True,
) -> list[Node]:
    """A page of runs. `number`: of the page, from 0; `columns`: those shown beside the question; `sort`: the
    column that they are sorted by.
    """
    if not page.total:
        return [h("p.qx-empty", NO_MATCH if filtered else EMPTY), *_selection(selected, ())]
    shown = [(name, column) for name, column in COLUMNS.items() if name in columns]
    head: list[Node | tuple[str, str]] = [
        ("select", "For charts and exports; the number is the run's in the charts"),
        sorted_by("question", "What was asked", sort, descends),
        *(sorted_by(name, sentence, sort, descends) for name, (sentence, _) in shown),
    ]
    places = {run_id: place for place, run_id in enumerate(selected, start=1)}
    rows = [
        _row(row, [column for _, column in shown], places.get(row.run_id), row.run_id == opened, again)
        for row, again in zip(page.rows, compared_before(page.rows), strict=True)
    ]
    listed = [table(head, rows, "Runs"), *pager("runs-page", number, page.total)]
    return [*_selection(selected, page.rows), *listed]


def compared_before(rows: Sequence[RunRow]) -> list[bool]:
    """Of each row, whether it belongs to the comparison of the row above: the same question to the
    same documents, by another method or agent, within COMPARED_WITHIN.
    """
    belongs: list[bool] = []
    ways: set[tuple[str, str]] = set()
    for above, row in zip([None, *rows], rows, strict=False):
        way = (row.method, row.checkpoint)
        same = (
            above is not None
            and (above.query, above.titles, above.n_chunks) == (row.query, row.titles, row.n_chunks)
            and abs(above.created_at - row.created_at) <= COMPARED_WITHIN
            and way not in ways
        )
        ways = {*ways, way} if same else {way}
        belongs.append(same)
    return belongs


def _selection(selected: Collection[str], rows: Sequence[RunRow]) -> list[Node]:
    every = bool(rows) and all(row.run_id in selected for row in rows)
    buttons = [
        act("select-page", "", "Select this page", disabled=every or not rows),
        act("clear", "", "Clear selection", disabled=not selected),
    ]
    words = f"{counted(len(selected), 'run')} selected" if selected else "Select runs for charts and exports."
    return [h("div.qx-row.qx-sm", h("span.qx-mut", words), h("span.qx-grow"), *buttons)]


def _row(row: RunRow, columns: Sequence[RunColumn], place: int | None, opened: bool, again: bool) -> Node:
    """`place`: among the selected runs; `again`: it answers the question of the row above, as one
    comparison.
    """
    selected = place is not None
    toggle, tick = "qx-btn.qx-tick" + ".qx-pressed" * selected, str(place or " ")
    label = {"aria-pressed": selected, "aria-label": f"Select: {row.query[:80]}"}
    words = ["↳ same question"] if again else _in_a_line(row.query)
    whole = {"dir": "auto", "aria-expanded": opened, "title": row.query[:2_000]}
    cells: list[Node] = [
        sends(toggle, "toggle", row.run_id, tick, **label),
        sends("qx-link.qx-query", "open", row.run_id, *words, **whole),
        *(cell(row) for _, cell in columns),
    ]
    kind = " ".join(["qx-on"] * opened + ["qx-again"] * again)
    return h("tr", {"class": kind} if kind else None, *(h("td", cell) for cell in cells))


def _in_a_line(question: str) -> list[Node]:
    """Its end stays where the line is too short for it."""
    line = shorten_between(" ".join(question.split()), 200)
    return [h("span", part) for part in two_ends(line, 14) if part]


# One run


def run_head(run: LoggedRun, asking: str) -> list[Node]:
    """What was asked of what, and what to do with the run; `asking`: "share" or "delete", half confirmed."""
    record = run.record
    parts = [facts_of(record.method).label, record.checkpoint, counted(record.n_chunks, "chunk")]
    parts += [f"{run.created_at.astimezone():%Y-%m-%d %H:%M}", run.status]
    parts += ["preview"] * bool(record.config.get("searched"))
    share = act("share", "", "Share…", aria_expanded=asking == "share")
    buttons = [
        act("copy-link", f"?run={record.run_id}", "Copy link", title=ADDRESS),
        h("span.qx-mark", "shared") if run.shared else share,
        act("delete", "", "Delete…", aria_expanded=asking == "delete"),
        act("close", "", "Close"),
    ]
    head = h("div.qx-row", h("h3", {"dir": "auto"}, record.query), h("span.qx-grow"), *buttons)
    titles = h("p.qx-mut.qx-sm", {"dir": "auto"}, ", ".join(run.titles))
    shown = [head, titles, h("p.qx-mut.qx-sm", " · ".join(parts))]
    if asking == "share":
        return [*shown, *sharing(record.run_id, "", asks=True)]
    delete = act("delete-now", record.run_id, "Delete for good")
    words = DELETING if asking == "delete" else ""
    return [*shown, *notice(words, "outdated", delete, act("keep", "", "Keep it"))]


def sharing(run_id: str, address: str, *, asks: bool) -> list[Node]:
    """Beside a run in Explore: the question before sharing it, or where it is found. `address`: the app's."""
    if asks:
        share = act("share-now", run_id, "Share it")
        return notice(SHARING, "outdated", share, act("keep", "", "Keep it to myself"))
    link = h("a", {"href": f"?run={run_id}"}, f"{address}/?run={run_id}")
    end = ". Somebody without this app can read it as one page."
    words = h("span", "The address of this run: ", link, end)
    copy = act("copy-link", f"?run={run_id}", "Copy link")
    close = sends("qx-btn.qx-close", "keep", "", "×", aria_label="Close")
    return [h("div.qx-notice.qx-info", {"role": "status"}, words, copy, page_button(), close)]


def has_branches(run: LoggedRun) -> bool:
    """Whether it is a SPARC run that came with its branches."""
    return "sparc" in run.details


def opens_in(run: LoggedRun) -> str:
    """Name of the tab where a run shows best."""
    if has_branches(run):
        return "SPARC"
    return "Evidence sets" if run.record.method in SETS else "Explore"


def run_steps(run: LoggedRun) -> list[Node]:
    """Settings, every choice, and why the run stopped."""
    support = support_of(run)
    cards = [_step(step, support, run) for step in run.trace.steps]
    parents = [run.record.parent_run_id] if run.record.parent_run_id else []
    family = [
        h("span", f"Continued {way} ", *(link_to("open", run_id, run_id[:8]) for run_id in run_ids))
        for way, run_ids in (("from", parents), ("in", run.children[:20]))
        if run_ids
    ]
    n_hits = len({*support} & {*run.trace.evidence})
    hits = f" {n_hits} of {counted(len(support), 'support chunk')} found." if support else ""
    return [
        h("dl.qx-fields.qx-sm", *fields(settings_of(run))),
        h("ol.qx-found", *cards),
        h("p.qx-stop", h("strong", f"{why_ended(run)} {review_sentence(run.trace)}".rstrip()), hits),
        *_answered(run),
        *_not_found_again(run),
        *([h("div.qx-row.qx-sm.qx-mut", *family)] if family else []),
    ]


def _answered(run: LoggedRun) -> list[Node]:
    """What the run's reader said; nothing where nothing was read."""
    result = _answer_of(run)
    if result is None:
        return []
    accepted = known_answer_of(run)
    head = state_words(result.state, result.confidence, result.asks)
    verdict = verdict_line(verdict_on(result.told_text, accepted), accepted, "span")
    told = shorten(result.told_text, LONGEST_MARK)
    text = h("strong", {"dir": "auto"}, told) if told else None
    return [h("p.qx-row", h("span.qx-mut", head), text, verdict)]


def _not_found_again(run: LoggedRun) -> list[Node]:
    """Passages of a run made elsewhere that are not in its documents."""
    passages = run.details.get("imported", {}).get("passages")
    missing = [
        h("li", {"dir": "auto"}, shorten(str(passage.get("text") or passage.get("name") or "no text"), CARD))
        for passage in (passages if isinstance(passages, list) else ())
        if isinstance(passage, dict) and passage.get("found") is None
    ]
    if not missing:
        return []
    return [h("h4", "Returned, and not found in these documents"), h("ul.qx-sm", *missing[:MOST_MISSING])]


def _answer_of(run: LoggedRun) -> EvidenceAnswer | None:
    texts = {step.chunk_id: step.text for step in run.trace.steps}
    return EvidenceAnswer.from_json(run.details.get("answer", {}), texts)


def _step(step: StepTaken, support: Sequence[int], run: LoggedRun) -> Node:
    marks: list[Node] = []
    if step.chosen_by == "person":
        marks.append(h("span.qx-mark", {"title": "A person chose this chunk, not the agent"}, "forced"))
    if step.chunk_id in support:
        marks.append(h("span.qx-mark.qx-hit", {"title": "The answer needs this chunk"}, "support"))
    method = run.record.method
    scored = {SPARC: SCORE, RESRAG: EXPLAIN["chance"], RESRAG_LLM: EXPLAIN["taken"]}
    facts = facts_of(method)
    sentence = facts.sentence if facts.foreign else scored.get(method, EXPLAIN["q"])
    goes_on = act("continue", step.step, "Continue from here", title=CONTINUE)
    head = [
        h("span.qx-pin", str(step.step)),
        h("strong", f"chunk {step.chunk_id:,}"),
        tip("span.qx-kv.qx-mut.qx-sm", sentence, f"{score_name(run)} {step.q_value:.3f}"),
        *marks,
        h("span.qx-grow"),
        None if method in (SPARC, *SETS) else goes_on,
    ]
    answer = _answer_of(run)
    place = None if answer is None else answer.place_in(step.chunk_id)
    quote = quoted(alone(step.text), place, content_words(run.record.query), most=CARD)
    words = marked(quote, "em.qx-telling")
    text = h("p.qx-quote.qx-sm", {"dir": "auto"}, *words) if step.text else None
    return h("li", {"class": f"qx-step {step_class(step.step)}"}, h("div.qx-step-head", *head), text)


def can_replay(run: LoggedRun) -> bool:
    """Whether a run can be made again: not one made elsewhere, one of SPARC only with its branches."""
    method = run.record.method
    return not facts_of(method).foreign and (method != SPARC or has_branches(run))


def replay_of(run: LoggedRun) -> Node:
    """Which run a replay is of."""
    words = f"Replay of {run.record.run_id[:8]}: {shorten_between(run.record.query, 80)}"
    return h("p.qx-mut.qx-sm", {"dir": "auto"}, words)


def replayed(replay: Replay) -> list[Node]:
    """How a run came out when it was made again."""
    verdict = "It came out the same" if replay.report.holds else "It came out differently"
    vectors = "the vectors that it was made with"
    if replay.used_vectors != replay.logged_vectors:
        vectors = f"other vectors ({replay.used_vectors})"
    again = counted(replay.n_embedded_again, "chunk")
    embedded = f", {again} of them embedded again" if replay.n_embedded_again else ""
    weights = "" if replay.same_weights else " The agent's weights have changed since."
    words = f"{verdict}: {replay.report.summary}. Made with {vectors}{embedded}.{weights}"
    return notice(words, "info" if replay.report.holds else "outdated")


def reproduce(snippets: Mapping[str, str], exported: bool) -> list[Node]:
    """How to make the run again elsewhere. `exported`: with its JSON export beside it."""
    words = "Export the run as JSON first and put the file beside it. " if exported else ""
    words += "Each makes this run again, with its settings and the documents as they were."
    if not snippets:
        words = (
            "What a language model said can't be had again; Open in SPARC shows this run out of the log, as"
            " it went."
        )
    return [h("p.qx-mut.qx-sm", words), *(_snippet(title, text) for title, text in snippets.items())]


def _snippet(title: str, text: str) -> Node:
    copy = act("copy", text, "Copy", aria_label=f"Copy: {title}")
    region = {"tabindex": "0", "role": "region", "aria-label": title}
    return h("div", h("div.qx-row", h("h4", title), copy), h("pre.qx-pre", region, text))


# Several runs


def _has_q(row: RunRow) -> bool:
    return facts_of(row.method).score_name == "Q"


def with_q(charted: Charted) -> list[tuple[RunRow, RunCurve]]:
    """The first MAX_CURVES runs whose numbers are values Q."""
    return [(row, curve) for row, curve in charted.curves if _has_q(row)][:MAX_CURVES]


def run_names(rows: Sequence[RunRow], selected: Sequence[str] = ()) -> list[str]:
    """Of runs in a legend: their places among the selected, and what they differ in."""
    parts: list[Callable[[RunRow], str]] = [
        lambda row: shorten_between(row.query, 36),
        lambda row: facts_of(row.method).label,
        lambda row: shorten(row.checkpoint, 20),
        lambda row: shorten(", ".join(row.titles), 24),
        lambda row: f"seed {row.seed}",
        lambda row: f"{row.created_at.astimezone():%H:%M:%S}",
    ]
    names = [""] * len(rows)
    for part in parts:
        said = [part(row) for row in rows]
        if len({*said}) > 1 and len({*names}) < len(rows):
            names = [f"{name} · {words}" if name else words for name, words in zip(names, said, strict=True)]
    places = [[*selected].index(row.run_id) for row in rows] if selected else range(len(rows))
    return [
        f"{place + 1}. {name or parts[0](row)}" for place, name, row in zip(places, names, rows, strict=True)
    ]


def charts_heading(charted: Charted, n_selected: int) -> list[Node]:
    """What is drawn, and what one may not compare."""
    scales = {(row.method, row.checkpoint) for row, _ in with_q(charted)}
    others = sorted({facts_of(row.method).label for row, _ in charted.curves if not _has_q(row)})
    left_out = f" Without Q, so counted but not drawn: {', '.join(others)}." if others else ""
    n_with_q = sum(_has_q(row) for row, _ in charted.curves)
    more = f" The chart of Q has the first {MAX_CURVES} of {n_with_q}." if n_with_q > MAX_CURVES else ""
    apart = " Each agent has its own scale of Q." if len(scales) > 1 else ""
    return figure_title("Charts", f"{counted(n_selected, 'run')} selected.{more}{apart}{left_out}")


def curve_table(charted: Charted, selected: Sequence[str] = ()) -> list[Node]:
    """The numbers of the chart: Q of each choice."""
    curves = with_q(charted)
    if not curves:
        return []
    longest = max(len(curve.chosen) for _, curve in curves)
    steps = [f"step {step}" for step in range(1, longest + 1)]
    refusals = ("refused", "Best Q when the agent stopped")
    head: list[str | tuple[str, str]] = ["run", "method", "agent", *steps, refusals]
    rows = []
    for name, (row, curve) in zip(run_names([row for row, _ in curves], selected), curves, strict=True):
        values = [f"{value:.3f}" for value in curve.chosen] + [""] * (longest - len(curve.chosen))
        refused = "" if curve.refused is None else f"{curve.refused:.3f}"
        rows.append(table_row(name, facts_of(row.method).label, row.checkpoint, *values, refused))
    return [table(head, rows, "Best Q by step")]


def count_table(charted: Charted, by: str = "method and agent") -> list[Node]:
    """The numbers of the chart: outcomes by group."""
    kinds = ("hit", "miss", "not labelled")
    rows = [
        table_row(name, *(f"{counts.get(kind, 0):,}" for kind in kinds))
        for name, counts in charted.counts.items()
    ]
    return [table([by, *kinds], rows, "Outcomes")]


# Files and SQL


def sql_result(result: SqlResult, page: int) -> list[Node]:
    """A page of an answer."""
    n_rows = len(result.rows)
    page = min(page, max(0, (n_rows - 1) // PAGE))
    more = f", the first {MAX_ROWS:,} at most" if result.more else ""
    words = (
        f"{counted(n_rows, 'row')}{more} · {result.milliseconds:,.0f} ms · of the log as it was at"
        f" {result.made_at.astimezone():%H:%M:%S}"
    )
    rows = [
        h("tr", *(h("td.qx-mut", "NULL") if cell is None else h("td", _cut(cell, 120)) for cell in row))
        for row in on_page(result.rows, page)
    ]
    return [
        h("p.qx-mut.qx-sm", {"role": "status"}, words),
        table(list(result.columns), rows, "Answer"),
        *pager("sql-page", page, n_rows),
    ]
