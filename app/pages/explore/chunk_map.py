"""The map of the chunks beside the strip, on the server's side.

A map is made when somebody first opens it, in the background, one at a time for all visitors; it belongs to
documents, whichever run is in view; whoever has a run's token may ask for the map of its documents, the
points of a piece of it, and what is near a text there. Made maps lie in the caches, in the part of whoever
opened the documents; their time counts as that of reading them.
"""

from __future__ import annotations

import base64
import logging
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from app.components.strip import GONE, MAX_POINTS, Answer, fields, mode_of, whole
from app.pages.explore.strip_source import RunStrip
from app.services.in_view import OpenDocuments, RunInView
from app.services.library import Library
from app.services.recent import Recent
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest, Cancelled, UserError
from core.corpus.layout import clusters, heading_groups, kept_layout, layout_of, vectors_key
from core.corpus.tiles import best_chunks, salience
from core.methods.qrag.episode import Episode
from core.views.draw.strip import packed
from core.views.draw.words import shorten
from core.views.quotes import one_line

MOST_WAITING = 8
"""Maps that are on their way at once."""
NEAREST = 10
"""Chunks that are shown for a text."""
_LONGEST = 160
"""Characters of each."""
_MOST_ASKING = 5.0
"""Seconds that a text waits for those of others."""
_AT_ONCE = 0.3
"""Seconds within which a kept map is mostly there: it comes with the first answer."""
_MOST_BYTES = 2**26
"""Of maps that stay in memory; others come from the caches."""
_TICK = 0.2
_SIDE = int(np.iinfo(np.uint16).max)
"""Right and lower border of a map, in the units of its places."""


@dataclass
class _Making:
    """A map on its way."""

    done: tuple[int, int] = (0, 1)
    cancelled: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def waiting(self, done: int, total: int) -> None:
        """A `core.base.child.Waiting`."""
        if self.cancelled:
            raise Cancelled
        self.done = (done, total)


class ChunkMaps:
    """Makes maps of the documents that are open."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock, self._turn, self._asking = threading.Lock(), threading.Semaphore(), threading.Semaphore()
        self._making: dict[str, _Making] = {}  # by the documents' token, as those made
        self._made: Recent[Answer] = Recent(_MOST_BYTES, lambda made: sum(map(len, made.values())))

    def chunkmap(self, request: Any) -> Answer:
        """[a run's token, "make" | "look" | "stop"] -> {"done", "total"} while its map is made, {"stopped"},
        {"refused": sentence}, or the map, packed: {"places": two numbers a chunk, "groups" and "clusters":
        one a chunk, "names" and "cluster_names": theirs}.
        """
        token, action = fields(request, 2)
        documents = self._documents(token)
        with self._lock:
            making = self._making.get(documents.token)
            if action == "make" and making is None and self._made.get(documents.token) is None:
                making = self._begin(documents)
        if making is not None:
            making.cancelled |= action == "stop"
            if not making.ended.wait(_AT_ONCE):
                return {"done": making.done[0], "total": making.done[1]}
        made = self._made.get(documents.token)
        if made is None:
            return {"stopped": True}
        if "refused" in made:
            self._made.drop(documents.token)  # another try may do better
        return made

    def nearest(self, request: Any) -> Answer:
        """[a run's token, text] -> {"chunks": ids, the nearest first, "texts": how they begin}: those of most
        Q to the agent, had it the text for a question and nothing chosen.
        """
        token, text = fields(request, 2)
        documents = self._documents(token)
        if not isinstance(text, str):
            raise BadRequest("What to look for must be a text.")
        if not self._asking.acquire(timeout=_MOST_ASKING):
            raise BadRequest("Others are asking just now; try again in a moment.")
        try:
            episode = Episode(text, documents.corpus, EpisodeConfig(searched=documents.searched))
            (look,) = documents.agent.look([(episode, ())])
        except UserError as error:
            raise BadRequest(_sentence(error)) from error
        finally:
            self._asking.release()
        chunks = best_chunks(look.scores.q_values, 0, NEAREST).tolist()
        texts = [shorten(one_line(documents.workspace[i].text), _LONGEST) for i in chunks]
        return {"chunks": chunks, "texts": texts}

    def piece(self, request: Any) -> Answer:
        """[a run's token, look, mode, left, top, right, bottom] -> the most telling chunks of a piece of the
        map, MAX_POINTS at most, and their values, packed as `points`.
        """
        token, look, mode, *borders = fields(request, 7)
        run = self._run(token)
        made = self._made.get(self._documents(token).token)
        if made is None or "places" not in made:
            raise BadRequest("There is no map of this document yet; make it first.")
        mode = mode_of(mode)
        n = whole("look", look, 1, run.trace.n_looks)
        values = RunStrip(run).values(n, mode).astype(np.float32)
        left, top, right, bottom = (whole("border", border, 0, _SIDE) for border in borders)
        x, y = np.frombuffer(base64.b64decode(made["places"]), "<u2").reshape(-1, 2).T
        is_inside = (left <= x) & (x <= right) & (top <= y) & (y <= bottom)
        chunks = np.flatnonzero(is_inside).astype(np.int32)
        if len(chunks) > MAX_POINTS:
            chunks = chunks[best_chunks(salience(values[chunks], mode), 0, MAX_POINTS)]
        return {"values": packed(values[chunks]), "chunks": packed(chunks)}

    def _run(self, token: object) -> RunInView:
        run = self._library.runs.get(token) if isinstance(token, str) else None
        if run is None:
            raise BadRequest(GONE)
        return run

    def _documents(self, token: object) -> OpenDocuments:
        run = self._run(token)
        return self._library.corpora.get(run.documents.token) or run.documents

    def _begin(self, documents: OpenDocuments) -> _Making:
        if documents.searched:
            raise BadRequest("The map can be made once all of the document is embedded.")
        if len(self._making) >= MOST_WAITING:
            raise BadRequest(f"{MOST_WAITING} maps are being made; open this one again in a minute.")
        making = self._making[documents.token] = _Making()
        threading.Thread(target=self._make, args=(documents, making), daemon=True).start()
        return making

    def _make(self, documents: OpenDocuments, making: _Making) -> None:
        made: Answer | None = None
        try:
            places = self._places(documents, making)
            names, groups = heading_groups(documents.workspace)
            cluster_names, cluster_of = clusters(places, documents.workspace)
            made = {
                "places": packed(places),
                "names": list(names),
                "groups": packed(groups),
                "cluster_names": list(cluster_names),
                "clusters": packed(cluster_of),
            }
        except Cancelled:
            pass
        except UserError as error:
            made = {"refused": _sentence(error)}
        except Exception:
            logging.getLogger(__name__).exception("a map could not be made")
            made = {"refused": "The map could not be made; the server's log says why."}
        with self._lock:
            if made is not None:
                self._made.put(documents.token, made)
            del self._making[documents.token]
        making.ended.set()

    def _places(self, documents: OpenDocuments, making: _Making) -> np.ndarray:
        index = documents.corpus.index
        vectors = index.vectors.cpu().numpy()
        vectors = vectors if index.rows is None else vectors[index.rows]
        hashes = (document.sha256 for document in documents.workspace.documents)
        part = self._library.cache_part(hashes, documents.owner)
        key = vectors_key(vectors)
        places = kept_layout(key, part)
        if places is not None:
            return places
        while not self._turn.acquire(timeout=_TICK):
            making.waiting(0, 1)
        try:
            take_time = partial(self._library.allowance.take_time, documents.owner)
            return layout_of(vectors, key, part, making.waiting, take_time)
        finally:
            self._turn.release()


def _sentence(error: UserError) -> str:
    return f"{str(error)[:1].upper()}{str(error)[1:]}."
