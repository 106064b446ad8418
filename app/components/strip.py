"""The canvas strip.

What every chunk is worth along the documents, drawn from tiles that the browser asks for, and the map beside
it. The component's value says what to draw around the numbers (pins, threshold, ruler); the numbers come from
server functions, tile by tile, so zooming stays smooth at any length; the map has one value a point. Server
functions have no session: they take the run's unguessable token, and `find` decides whether there is such a
run. They check all they get and answer {"error": sentence} rather than raise, because an exception reaches
the browser as nothing. Sends `select` {"chunk_id"} and `look` {"look"}: values from a browser, to be checked
by whoever listens. The template is static; texts reach the page as the component's value and as answers, and
only ever become text nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import gradio as gr
import numpy as np

from core.base.errors import BadRequest
from core.corpus.tiles import MODES, Mode, StripSource, best_chunks, run_map, salience, tile
from core.views.draw.scripts import script
from core.views.draw.strip import STRIP_SCRIPT, packed

Find = Callable[[str], StripSource | None]
Answer = dict[str, Any]
Question = Callable[[Any], Answer]

GONE = "This run is no longer here; run the agent again."
MAX_WIDTH = 4096
"""Columns of one tile: a wide screen at two device pixels a pixel."""
MAX_POINTS = 4096
"""Chunks of the map that have a value: one of each so many stretches of the document."""
PAGE = 20
"""Rows of the table sent at once."""
MAX_TEXT = 400
"""Characters of a chunk shown when it is pointed at."""


def strip_loading(sentence: str) -> dict[str, Any]:
    """A value that shows one sentence while there is nothing to draw yet."""
    return {"loading": sentence}


def strip(
    find: Find, value: Mapping[str, Any] | None = None, of_map: Sequence[Question] = (), **kwargs: Any
) -> gr.HTML:
    """A component that shows a `strip_value`, a `strip_loading`, or, with None, an invitation to run the
    agent.

    find: the numbers of the run that a token names, None when there is no such run (any more). of_map:
    answer what the map asks beside its points, `chunkmap` and `nearest`, where values have a `chunk_map`.
    (No subclass of gr.HTML: Gradio writes stub files beside those.)
    """
    place = "<!-- chunk_map.html, in the app -->"
    return gr.HTML(
        value,
        html_template=script("strip.html").replace(place, script("chunk_map.html")),
        js_on_load=STRIP_SCRIPT,
        apply_default_css=False,
        server_functions=[*server_functions(find), *map(_answering, of_map)],
        **kwargs,
    )


def server_functions(find: Find) -> list[Question]:
    """The five questions a browser may ask; each takes one list."""

    def source(token: object) -> StripSource:
        strip_source = find(token) if isinstance(token, str) else None
        if strip_source is None:
            raise BadRequest(GONE)
        return strip_source

    def tiles(request: Any) -> Answer:
        """[token, look, mode, lo, hi, width] -> a tile, its arrays packed."""
        token, look, mode, lo, hi, width = fields(request, 6)
        run = source(token)
        lo, hi = _number("lo", lo, run.n_chunks), _number("hi", hi, run.n_chunks)
        if lo >= hi:
            words = f"The range from {lo:g} to {hi:g} is empty"
            raise BadRequest(f"{words}; ask for one that ends after it begins.")
        values = run.values(whole("look", look, 1, run.n_looks), mode_of(mode))
        answer = tile(values, lo, hi, whole("width", width, 1, MAX_WIDTH), salience=salience(values, mode))
        return {
            "first": answer.first,
            "last": answer.last,
            "low": packed(answer.minima),
            "high": packed(answer.maxima),
            "best": packed(answer.best),
        }

    def runmap(request: Any) -> Answer:
        """[token, look, width] -> one row a look from `look` on, packed one after the other."""
        token, look, width = fields(request, 3)
        run = source(token)
        rows = run_map(
            [run.values(each, "q") for each in range(whole("look", look, 1, run.n_looks), run.n_looks + 1)],
            whole("width", width, 1, MAX_WIDTH),
        )
        return {"n_rows": rows.shape[0], "n_columns": rows.shape[1], "cells": packed(rows)}

    def points(request: Any) -> Answer:
        """[token, look, mode] -> values of the map's points, packed, and their chunks; none named: all."""
        token, look, mode = fields(request, 3)
        run = source(token)
        values = run.values(whole("look", look, 1, run.n_looks), mode_of(mode)).astype(np.float32)
        if run.n_chunks <= MAX_POINTS:
            return {"values": packed(values), "chunks": ""}
        best = tile(values, 0, run.n_chunks, MAX_POINTS, salience=salience(values, mode)).best
        best = best[best >= 0]
        return {"values": packed(values[best]), "chunks": packed(best)}

    def describe(request: Any) -> Answer:
        """[token, chunk_id, look] -> facts of one chunk."""
        token, chunk_id, look = fields(request, 3)
        run = source(token)
        chunk_id = whole("chunk_id", chunk_id, 0, run.n_chunks - 1)
        return _facts(run, chunk_id, whole("look", look, 1, run.n_looks))

    def top(request: Any) -> Answer:
        """[token, look, mode, offset] -> a page of the best chunks."""
        token, look, mode, offset = fields(request, 4)
        run = source(token)
        look, offset = whole("look", look, 1, run.n_looks), whole("offset", offset, 0, run.n_chunks - 1)
        ids = best_chunks(salience(run.values(look, mode_of(mode)), mode), offset, PAGE)
        rows = [_facts(run, int(chunk_id), look) for chunk_id in ids]
        return {"total": run.n_chunks, "offset": offset, "rows": rows}

    return [_answering(question) for question in (tiles, runmap, points, describe, top)]


def _answering(question: Question) -> Question:
    """The question, with errors turned into {"error": sentence}."""

    @wraps(question)
    def answered(request: Any) -> Answer:
        try:
            return question(request)
        except BadRequest as error:
            return {"error": str(error)}
        except Exception:
            logging.getLogger(__name__).exception("the strip's %s failed", question.__name__)
            return {"error": "The numbers could not be read; the server's log says why."}

    return answered


def _facts(run: StripSource, chunk_id: int, look: int) -> Answer:
    facts = run.describe(chunk_id, look)
    return {**facts, "text": facts["text"][:MAX_TEXT], "chunk_id": chunk_id}


def fields(request: Any, count: int) -> list[Any]:
    if not isinstance(request, list) or len(request) != count:
        raise BadRequest(f"The request must be a list of {count} values.")
    return request


def _number(name: str, value: Any, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= high:
        raise BadRequest(f"{name}={str(value)[:40]!r} must be a number between 0 and {high}.")
    return float(value)


def whole(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadRequest(f"{name}={str(value)[:40]!r} must be a whole number between {low} and {high}.")
    return value


def mode_of(value: Any) -> Mode:
    if value not in MODES:
        raise BadRequest(f"mode={str(value)[:40]!r} is unknown; ask for one of {', '.join(MODES)}.")
    mode: Mode = value
    return mode
