"""The agent of Q-RAG section 3 and the one episode loop.

Episodes run in lockstep, their states embedded in one batch. A beam keeps several paths of an episode and
tells the best at its end; without one there is a single path, told as it grows. The transition is
deterministic, so a run can start from any `prefix` of choices: stepping, going back, forcing a chunk and
continuing a logged run are new episodes with another prefix. Sampling is seeded by (seed, episode id, step),
so a run depends neither on batching nor on pauses. Review, which the paper doesn't have: once stopped, each
choice is asked again in the state of the others, and while some are worth less there than the review
threshold the least of them is taken back, so that a chunk that a later one made superfluous is no evidence.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.base.config import EpisodeConfig
from core.base.errors import BadCheckpoint, BadRequest
from core.base.events import Event, RunStarted, StepScores, StepTaken, Stopped
from core.corpus.index import Searchable
from core.corpus.tiles import best_chunks
from core.corpus.words import identifiers, words_of
from core.encode.encoder import DualEncoder
from core.encode.forward import StateTokens
from core.methods.qrag.episode import Episode, Look, Reranked
from core.methods.qrag.planner import BeamPath, best_actions, best_paths
from core.methods.qrag.policy import ChosenAction, choose
from core.methods.qrag.positions import chunk_positions
from core.methods.qrag.reranked import Reranks, read_again, read_best
from core.methods.qrag.stop import stop_of

_Beams = dict[int, list[BeamPath]]
"""The paths of each episode that goes on, by its place among the others."""


@dataclass
class _Review:
    """Which choices of a stopped episode the others make superfluous."""

    episode: Episode
    chosen: tuple[int, ...]
    taken_back: list[int] = field(default_factory=list)
    worth: dict[int, float] = field(default_factory=dict)
    """Q of each choice beside the others that were still held."""
    settled: bool = False

    @property
    def remaining(self) -> list[int]:
        return [chunk_id for chunk_id in self.chosen if chunk_id not in self.taken_back]

    @property
    def goes_on(self) -> bool:
        """Whether each remaining choice is asked again; the last one left stays."""
        has_threshold = self.episode.config.review_threshold is not None
        return has_threshold and not self.settled and len(self.remaining) > 1

    def take_back(self) -> None:
        """Lets go of the choice worth least if that is too little."""
        threshold = self.episode.config.review_threshold
        assert threshold is not None
        least = min(self.remaining, key=self.worth.__getitem__)
        self.settled = self.worth[least] >= threshold
        if not self.settled:
            self.taken_back.append(least)

    def end(self, stopped: Stopped, milliseconds: float) -> Stopped:
        """The event, which says what the review brought."""
        if not self.worth:
            return stopped
        review, taken_back = tuple(self.worth[chunk_id] for chunk_id in self.chosen), tuple(self.taken_back)
        milliseconds += stopped.milliseconds
        return replace(stopped, review=review, taken_back=taken_back, milliseconds=milliseconds)


class Agent:
    """A dual encoder that acts. Stateless but for its weights, and for what a reranker said of the last
    questions. `name` is the method's name in events.
    """

    def __init__(self, encoder: DualEncoder, name: str = "qrag") -> None:
        self.name = name
        self.encoder = encoder
        self.spec = encoder.spec
        self._reranks = Reranks()

    def run(
        self,
        query: str,
        corpus: Searchable,
        config: EpisodeConfig,
        prefix: Sequence[int] = (),
        hears: Callable[[int, int], None] | None = None,
    ) -> Generator[Event]:
        """One episode. `hears`: as `Episode.hears`. Raises BadRequest before the first event."""
        for _, event in self.run_batch([Episode(query, corpus, config, prefix=tuple(prefix), hears=hears)]):
            yield event

    def run_batch(self, episodes: Sequence[Episode]) -> Iterator[tuple[int, Event]]:
        """(index into `episodes`, event): each one's in order, interleaved. Raises BadRequest at once."""
        for episode in episodes:
            self.check(episode)
        for i, episode in enumerate(episodes):
            yield i, RunStarted(episode.query, self.name, self.spec.name, len(episode.corpus), episode.config)
        beams = {i: [BeamPath(episode.prefix)] for i, episode in enumerate(episodes)}
        while beams:
            beams = self._further(episodes, beams)
            ends: dict[int, Stopped] = {}
            for i, (best, *others) in beams.items():
                if best.stopped is not None and all(path.stopped for path in others):
                    ends[i] = best.stopped
                if i in ends or episodes[i].config.beam_width == 1:
                    for step in best.steps:
                        yield i, step
                    beams[i] = [replace(best, steps=()), *others]  # scores that were told need no memory
            ended = [(episodes[i], beams.pop(i)[0].chosen, end) for i, end in ends.items()]
            yield from zip(ends, self.review(ended), strict=True)

    def _further(self, episodes: Sequence[Episode], beams: _Beams) -> _Beams:
        """The best paths of each episode after one more look from each that goes on."""
        grown: _Beams = {i: [] for i in beams}
        asked: list[tuple[int, BeamPath]] = []
        for i, path in [(i, path) for i, paths in beams.items() for path in paths]:
            if path.stopped is None and len(path.chosen) < episodes[i].config.step_budget:
                asked.append((i, path))
            else:
                stopped = path.stopped or Stopped("budget", len(path.chosen))
                grown[i].append(replace(path, stopped=stopped))
        looks = self.look([(episodes[i], path.chosen) for i, path in asked])
        for (i, path), look in zip(asked, looks, strict=True):
            grown[i] += self._grown(episodes[i], path, look)
        same_set = self.spec.state_order == "document"
        return {
            i: best_paths(paths, episodes[i].config.beam_width, same_set_is_same_state=same_set)
            for i, paths in grown.items()
        }

    def check(self, episode: Episode) -> None:
        """Raises BadRequest when the run can't be made."""
        config = episode.config
        config.check_against(len(episode.corpus))
        config.check_forced()
        if config.step_budget > (most := self.encoder.max_state_chunks):
            raise BadRequest(
                f"step_budget={config.step_budget} is above {most}, the number of chunks that a state of"
                f" {self.spec.name} holds; lower the budget"
            )

    def look(self, states: Sequence[tuple[Episode, Sequence[int]]]) -> list[Look]:
        """Q-values of all chunks for several (episode, chosen ids) states, embedded in one batch."""
        if not states:
            return []
        started = time.perf_counter()
        tokens, vectors = self._embedded(states)
        shared = (time.perf_counter() - started) / len(states)
        looks = []
        for (episode, chosen), state_tokens, vector in zip(states, tokens, vectors, strict=True):
            started = time.perf_counter()
            look = self.seen(episode, chosen, state_tokens, vector)
            looks.append(replace(look, milliseconds=1000 * (shared + time.perf_counter() - started)))
        return looks

    def _embedded(
        self, states: Sequence[tuple[Episode, Sequence[int]]]
    ) -> tuple[list[StateTokens], np.ndarray]:
        """Tokens and vectors (B, D) of (episode, chosen ids) states."""
        tokens = [
            self.encoder.state_tokens(episode.query, [episode.corpus.text(i) for i in self._read(chosen)])
            for episode, chosen in states
        ]
        return tokens, self.encoder.encode_states(tokens)

    def seen(
        self, episode: Episode, chosen: Sequence[int], tokens: StateTokens, state_vector: np.ndarray
    ) -> Look:
        """A look from an embedded state, over shards with Q of the best alone. Raises BadCheckpoint."""
        corpus, config = episode.corpus, episode.config
        positions = chunk_positions(self.spec, corpus.borders, chosen, use_positions=config.use_positions)
        q_values, words = corpus.index.q_values(state_vector, positions), self._words_part(episode)
        if words is not None:
            q_values += words
        if not np.isfinite(q_values).all():
            raise BadCheckpoint(
                f"the Q-values of {self.spec.name} are no numbers, since its weights or settings are damaged;"
                " train or download it again"
            )
        available = config.searched_chunks(len(corpus))
        if config.searched:
            q_values[~available] = np.nan
        available[list(chosen)] = False
        available[list(config.forbidden)] = False
        reranked = self._reranked(episode, chosen, q_values, available)
        if reranked is not None:
            q_values[reranked.chunk_ids] += reranked.parts
        turned = self.spec.position_kind != "none" and config.use_positions
        scores = StepScores(q_values, positions if turned else None)
        return Look(tokens, state_vector, words, reranked, scores, available)

    def review(self, ends: Sequence[tuple[Episode, Sequence[int], Stopped]]) -> list[Stopped]:
        """Ends of (episode, chosen ids, end), with what the review says of the choices."""
        started = time.perf_counter()
        reviews = [_Review(episode, tuple(chosen)) for episode, chosen, _ in ends]
        while asked := [
            (review, chunk_id) for review in reviews if review.goes_on for chunk_id in review.remaining
        ]:
            states = [
                (review.episode, [other for other in review.remaining if other != chunk_id])
                for review, chunk_id in asked
            ]
            seen = zip(asked, states, *self._embedded(states), strict=True)
            for (review, chunk_id), state, tokens, vector in seen:
                review.worth[chunk_id] = self._q_value(*state, tokens, vector, chunk_id)
            for review in {id(review): review for review, _ in asked}.values():
                review.take_back()
        n_reviewed = max(1, sum(bool(review.worth) for review in reviews))
        milliseconds = 1000 * (time.perf_counter() - started) / n_reviewed
        return [
            review.end(stopped, milliseconds) for review, (_, _, stopped) in zip(reviews, ends, strict=True)
        ]

    def _q_value(
        self,
        episode: Episode,
        chosen: Sequence[int],
        tokens: StateTokens,
        state_vector: np.ndarray,
        chunk_id: int,
    ) -> float:
        """Q of one chunk; without those of all the others where it doesn't hang on them."""
        if self.spec.rerank_weight:  # a part of Q only among others
            # not self.seen, which over shards has Q of the best chunks alone
            look = Agent.seen(self, episode, chosen, tokens, state_vector)
            return float(look.scores.q_values[chunk_id])
        corpus, config = episode.corpus, episode.config
        positions = chunk_positions(self.spec, corpus.borders, chosen, use_positions=config.use_positions)
        words = self._words_part(episode)
        q_value = corpus.index.q_value(state_vector, chunk_id, float(positions[chunk_id]))
        return q_value + (0.0 if words is None else float(words[chunk_id]))

    def _words_part(self, episode: Episode) -> np.ndarray | None:
        """(N,) float32: what the query's words add to Q in every state, an inner product over all chunks."""
        spec, query = self.spec, episode.query
        names = identifiers(query) if spec.identifier_weight else []
        if not (spec.word_weight or names):
            return None
        index = episode.corpus.words
        part: np.ndarray = np.float32(spec.word_weight) * index.shares(words_of(query))
        return part + np.float32(spec.identifier_weight) * index.shares(names)

    def _reranked(
        self, episode: Episode, chosen: Sequence[int], q_values: np.ndarray, available: np.ndarray
    ) -> Reranked | None:
        """What the reranker adds to the best chunks by `q_values`, the rest of Q; `available` says which may
        be chosen.
        """
        if self.encoder.reranker is None:
            return None
        spec, read = self.spec, self._read(chosen)
        n_searched = episode.config.n_searched(len(episode.corpus))  # those without Q come last
        ranked = best_chunks(q_values, 0, min(spec.rerank_pool + len(read), n_searched))
        best = ranked[~np.isin(ranked, read)][: spec.rerank_pool]
        known = self._reranks.kept(episode, read)
        n_known = 0 if known is None else len(known.log_odds)
        reading = self._reading(episode, read, len(best), n_known)
        n_leading = 1 + len(chosen) - len(read)
        borders, forbidden = episode.corpus.borders, episode.config.forbidden
        reranked = read_best(reading, best, q_values[best], borders, spec, n_leading, known, forbidden)
        if len(reranked.log_odds) > n_known:
            self._reranks.keep(reranked, episode, read)
        if not chosen or not spec.rerank_again:
            return reranked
        again = self._reranks.kept(episode, chosen, forbidden)
        if again is None:
            ids = reranked.chunk_ids
            behind = self._reading(episode, chosen, spec.rerank_again, 0)
            again = read_again(behind, reranked, q_values[ids], available[ids], spec)
            self._reranks.keep(again, episode, chosen, forbidden)
        return again

    def _reading(
        self, episode: Episode, behind: Sequence[int], most: int, n_read: int
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Log-odds of chunks behind others, by ids; tells how many of `most` were read, from `n_read` on."""
        reranker, corpus = self.encoder.reranker, episode.corpus
        assert reranker is not None

        def told(n_now: int) -> None:
            if episode.hears is not None:
                episode.hears(n_read + n_now, most)

        def read(chunk_ids: np.ndarray) -> np.ndarray:
            nonlocal n_read
            read_now, before = ([corpus.text(i) for i in ids] for ids in (chunk_ids.tolist(), behind))
            log_odds = reranker.log_odds(episode.query, read_now, before, told)
            n_read += len(chunk_ids)
            return log_odds

        return read

    def _read(self, chosen: Sequence[int]) -> Sequence[int]:
        """Those of the chosen chunks that a state holds, in its order."""
        if not self.spec.reads_choices:
            return ()
        return sorted(chosen) if self.spec.state_order == "document" else chosen

    def _grown(self, episode: Episode, path: BeamPath, look: Look) -> list[BeamPath]:
        """The path at its end, or with each choice that a look leads to: one, in a beam several."""
        config, step = episode.config, len(path.chosen) + 1
        q_values = look.scores.q_values
        forced = dict(config.forced).get(step)
        if forced is not None and not look.available[forced]:
            forced = None  # the agent took it by itself at an earlier step
        if forced is None and (end := stop_of(look, step - 1, config.stop_threshold)) is not None:
            return [replace(path, stopped=end)]
        if config.beam_width > 1:
            choices = best_actions(look, config.beam_width, config.stop_threshold)
        else:
            rng = np.random.default_rng([config.seed, zlib.crc32(episode.id.encode()), step])
            choices = [choose(q_values, look.available, config.temperature, config.top_k_actions, rng)]
        if forced is not None:
            choices = [ChosenAction(forced, float(q_values[forced]), 1.0, choices[0].state_value, 1)]
        steps = (step_event(episode, step, one, look, by_person=forced is not None) for one in choices)
        return [path.after(event) for event in steps]


def step_event(
    episode: Episode, step: int, choice: ChosenAction, look: Look, *, by_person: bool = False
) -> StepTaken:
    """The event of one action."""
    positions, words, reranked = look.scores.positions, look.words, look.reranked
    is_plain = positions is None and words is None and reranked is None
    return StepTaken(
        step=step,
        chunk_id=choice.chunk_id,
        q_value=choice.q_value,
        probability=choice.probability,
        state_value=choice.state_value,
        position=None if positions is None else float(positions[choice.chunk_id]),
        text=episode.corpus.text(choice.chunk_id),
        milliseconds=look.milliseconds,
        content_q=None if is_plain else episode.corpus.index.q_value(look.state_vector, choice.chunk_id),
        words_q=None if words is None else float(words[choice.chunk_id]),
        reranked_q=None if reranked is None else reranked.part_of(choice.chunk_id),
        chosen_by="person" if by_person else "agent",
        n_tied=choice.n_tied,
        n_state_tokens=len(look.tokens.ids),
        n_state_tokens_dropped=look.tokens.n_dropped,
        scores=look.scores,
    )
