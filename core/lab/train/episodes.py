"""Episodes of one part of a batch, and their loss.

Q-RAG algorithm 1, lines 16 to 29. What keeps it cheap: every distinct text of the batch is embedded once per
tower, noise never carries a gradient as a candidate, and the graphs of the states from the rollout serve the
loss, so no state is embedded twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from core.encode.checkpoint import CheckpointSpec
from core.encode.rope import frequencies, on_grid
from core.lab.tasks.example import Example
from core.lab.train.config import TrainConfig
from core.lab.train.returns import lambda_returns, rewards
from core.lab.train.towers import TrainableTowers
from core.methods.qrag.positions import chunk_positions

_MASKED = -1e9
"""Score of what can't be chosen."""
_N_TWINS = 5
"""Of the chunks that read most like support, so many may be taken by mistake."""


@dataclass(frozen=True, eq=False, slots=True)
class Played:
    """What a part of a batch brought. (T, B) tensors; entries beyond an episode's end are 0."""

    loss: torch.Tensor
    td_loss: float
    ranking_loss: float
    q_values: torch.Tensor
    """Online Q of the chosen chunks."""
    values: torch.Tensor
    """V of the states after each choice, by the target towers; the last row only with `bootstrap_at_cap`."""
    rewards: torch.Tensor
    returns: torch.Tensor
    entropy: torch.Tensor
    """Of the exploring policy, nats."""
    taken: torch.Tensor
    """bool: which steps were taken."""
    completed: list[bool]
    """Whether each episode took all its support."""
    n_tokens: int
    """Tokens embedded by the online towers, special ones left out."""


class _Table:
    """A part's examples, padded: each chunk's row of text, what is free, what is support, what words add."""

    def __init__(self, examples: Sequence[Example], device: torch.device) -> None:
        self.examples = examples
        self.texts = list(dict.fromkeys(text for example in examples for text in example.chunks))
        row = {text: i for i, text in enumerate(self.texts)}
        self.row = row
        shape = (len(examples), max(len(example.chunks) for example in examples))
        rows, free, support = (
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape, dtype=bool),
            np.zeros(shape, dtype=bool),
        )
        word_shares = np.zeros(shape, dtype=np.float32)
        for i, example in enumerate(examples):
            n = len(example.chunks)
            rows[i, :n] = [row[text] for text in example.chunks]
            free[i, :n] = True
            support[i, list(example.support)] = True
            word_shares[i, : len(example.word_shares)] = example.word_shares
        self.rows = torch.from_numpy(rows).to(device)
        self.free = torch.from_numpy(free).to(device)
        self.support = torch.from_numpy(support).to(device)
        self.word_shares = torch.from_numpy(word_shares).to(device)

    def own_texts(self) -> set[str]:
        """Texts that are no noise: those worth a gradient as candidates."""
        return {text for example in self.examples for text in example.own_texts}


class Scorer:
    """Q of candidates in torch: <s, R_p a> for whole tables of chunks."""

    def __init__(self, spec: CheckpointSpec, dim: int, device: torch.device) -> None:
        self.spec = spec
        every_half = np.tile(frequencies(dim, spec.halves, spec.rope_theta), spec.halves)
        self._frequencies = torch.from_numpy(every_half).to(device, torch.float32)

    def positions(
        self, examples: Sequence[Example], chosen: Sequence[Sequence[int]], width: int
    ) -> torch.Tensor:
        """(B, width) float32, on the checkpoint's grid; 0 for padding."""
        out = np.zeros((len(examples), width), dtype=np.float32)
        for i, (example, ids) in enumerate(zip(examples, chosen, strict=True)):
            n = len(example.chunks)
            out[i, :n] = on_grid(
                chunk_positions(self.spec, np.array([0, n]), ids), self.spec.position_resolution
            )
        return torch.from_numpy(out).to(self._frequencies.device)

    def phases(self, positions: torch.Tensor) -> torch.Tensor | None:
        """(..., D / 2) complex unit numbers that turn vectors at positions (...,); None: nothing turns."""
        if self.spec.position_kind == "none":
            return None
        angles = positions.unsqueeze(-1) * self._frequencies
        return torch.polar(torch.ones_like(angles), angles)

    def turn(self, vectors: torch.Tensor, phases: torch.Tensor | None) -> torch.Tensor:
        """R_p v: vectors (..., D), phases as above. Component pairs are complex: turning is one product."""
        if phases is None:
            return vectors
        pairs = torch.view_as_complex(vectors.reshape(*vectors.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * phases).reshape(vectors.shape)

    def scores(self, states: torch.Tensor, chunks: torch.Tensor, phases: torch.Tensor | None) -> torch.Tensor:
        """(B, N) Q: states (B, D), chunks (B, N, D)."""
        return torch.bmm(self.turn(chunks, phases), states.unsqueeze(-1)).squeeze(-1)


def play(
    towers: TrainableTowers,
    examples: Sequence[Example],
    config: TrainConfig,
    alpha: float,
    generator: torch.Generator,
) -> Played:
    """Plays one episode an example with the online towers, and forms the loss. Within `towers.formed()`."""
    part = _Part(towers, examples, config)
    rollout = collect(part, alpha, generator)
    values, returns = targets(part, rollout, alpha)
    q_values, td_loss = _td_loss(part, rollout, returns)
    ranking_loss = _ranking(part, rollout)
    return Played(
        loss=ranking_loss if part.supervised else td_loss + config.ranking_weight * ranking_loss,
        td_loss=float(td_loss.detach()),
        ranking_loss=float(ranking_loss.detach()),
        q_values=q_values.detach(),
        values=values[1:],
        rewards=rollout.rewards,
        returns=returns,
        entropy=rollout.entropy * rollout.taken,
        taken=rollout.taken,
        completed=[
            set(example.support) <= set(ids) for example, ids in zip(examples, rollout.chosen, strict=True)
        ],
        n_tokens=rollout.n_tokens,
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Observation:
    """What all episodes of a part see before one choice."""

    texts: list[tuple[str, list[str]]]
    """Question and chosen chunks of each."""
    positions: torch.Tensor
    """(B, N)."""
    free: torch.Tensor
    """(B, N) bool."""


@dataclass(frozen=True, eq=False, slots=True)
class _Rollout:
    """Episodes as they were played: T steps, and what is seen after the last."""

    observed: list[_Observation]
    """T + 1."""
    states: list[torch.Tensor]
    """(B, D) each, with their graphs."""
    scores: list[torch.Tensor]
    """(B, N) each, with their graphs."""
    actions: list[torch.Tensor]
    """(B,) each; what lies beyond an episode's end means nothing."""
    chosen: list[list[int]]
    """Chunks of each episode, those that it began with first."""
    ends: torch.Tensor
    """(B,) steps of each."""
    rewards: torch.Tensor
    """(T, B)."""
    entropy: torch.Tensor
    """(T, B)."""
    taken: torch.Tensor
    """(T, B) bool."""
    n_tokens: int


class _Part:
    """A part of a batch with the vectors of its chunks."""

    def __init__(self, towers: TrainableTowers, examples: Sequence[Example], config: TrainConfig) -> None:
        self.towers, self.examples, self.config = towers, examples, config
        self.table = _Table(examples, towers.device)
        self.scorer = Scorer(towers.spec, towers.dim, towers.device)
        self.supervised = config.objective == "supervised"
        self.ranks = self.supervised or config.ranking_weight > 0
        self.chunks, self.with_gradient = _embed_candidates(towers, self.table, with_gradient=self.ranks)
        self.words = towers.spec.word_weight * self.table.word_shares

    def observe(self, chosen: Sequence[Sequence[int]], free: torch.Tensor) -> _Observation:
        """The states after these choices."""
        texts = [
            (example.question, _state_texts(self.towers.spec, example, ids))
            for example, ids in zip(self.examples, chosen, strict=True)
        ]
        return _Observation(texts, self.scorer.positions(self.examples, chosen, free.shape[1]), free.clone())

    def scores(self, states: torch.Tensor, candidates: torch.Tensor, seen: _Observation) -> torch.Tensor:
        """(B, N) Q; states (B, D), candidates (B, N, D)."""
        phases = self.scorer.phases(seen.positions)
        return (self.scorer.scores(states, candidates, phases) + self.words).masked_fill(~seen.free, _MASKED)


def collect(part: _Part, alpha: float, generator: torch.Generator) -> _Rollout:
    """Plays episodes in lockstep by the exploring policy, or along their support where that is learned."""
    towers, config, table = part.towers, part.config, part.table
    candidates = functional.embedding(table.rows, part.chunks)
    chosen = [[] if part.supervised else _start(example, config, generator) for example in part.examples]
    n_given = [len(ids) for ids in chosen]
    ends = torch.tensor(
        [
            min(len(e.support) if part.supervised else config.steps, len(e.chunks)) - n
            for e, n in zip(part.examples, n_given, strict=True)
        ],
        device=towers.device,
    )
    n_steps = int(ends.max())
    free = table.free.clone()
    for i, ids in enumerate(chosen):
        free[i, ids] = False
    observed = [part.observe(chosen, free)]
    states: list[torch.Tensor] = []
    scores: list[torch.Tensor] = []
    actions: list[torch.Tensor] = []
    entropy = torch.zeros((n_steps, len(part.examples)), device=towers.device)
    n_tokens = towers.count_tokens(table.texts)
    for t in range(n_steps):
        seen = observed[t]
        # A state that reads no choices is the question, embedded once.
        states.append(towers.embed_states(seen.texts) if t == 0 or towers.spec.reads_choices else states[0])
        scores.append(part.scores(states[t], candidates, seen))
        n_tokens += towers.count_tokens(text for query, parts in seen.texts for text in (query, *parts))
        with torch.no_grad():
            if part.supervised:
                # Any support that is left, else anything free: past an episode's end, where nothing counts.
                weights = (table.support & free).float() + 1e-9 * free.float() + 1e-30
                action = torch.multinomial(weights, 1, generator=generator)[:, 0]
            else:
                action, entropy[t] = _explore(scores[t], alpha, config.top_k_actions, generator)
        actions.append(action)
        for i, chunk_id in enumerate(action.tolist()):
            if t < ends[i]:
                chosen[i].append(chunk_id)
                free[i, chunk_id] = False
        observed.append(part.observe(chosen, free))
    reward = torch.zeros_like(entropy)
    for i, (example, ids) in enumerate(zip(part.examples, chosen, strict=True)):
        paid = rewards(ids, example.support, penalize_extra_steps=config.penalize_extra_steps)
        reward[: len(paid) - n_given[i], i] = torch.tensor(paid[n_given[i] :])
    taken = torch.arange(n_steps, device=towers.device)[:, None] < ends
    return _Rollout(observed, states, scores, actions, chosen, ends, reward, entropy, taken, n_tokens)


@torch.no_grad()
def targets(part: _Part, rollout: _Rollout, alpha: float) -> tuple[torch.Tensor, torch.Tensor]:
    """((T + 1, B) values of the states, (T, B) returns that Q is pulled towards); zeros where unused.

    Row t of the values is V(s_t), of the state before choice t; the last is that after the last choice.
    """
    towers, config, n_steps = part.towers, part.config, len(rollout.states)
    values = torch.zeros((n_steps + 1, len(part.examples)), device=towers.device)
    if part.supervised:
        return values, torch.zeros_like(rollout.rewards)
    # No gradient may flow into targets, or the loss could fall by moving them: so they come from the slow
    # copies of the towers, or from the online vectors cut off from their graph.
    chunks = (
        towers.embed_chunks(part.table.texts, target=True) if config.target_towers else part.chunks.detach()
    )
    candidates = functional.embedding(part.table.rows, chunks)
    # The return of choice t uses V(s_t+1), so V(s_0) is never needed. After the last choice nothing follows,
    # unless the episode is thought to go on beyond the step cap: then V(s_T) stands for what it would gain.
    for t in range(1, n_steps + 1 if config.bootstrap_at_cap else n_steps):
        seen = rollout.observed[t]
        # Without target towers the rollout's vectors serve again; it made none of the state after the last
        # choice, since nothing was chosen there.
        fresh = config.target_towers or t == n_steps
        state = towers.embed_states(seen.texts, target=True) if fresh else rollout.states[t].detach()
        values[t] = _state_values(part.scores(state, candidates, seen), alpha, config)
    # Episodes end at different steps: `ends` cuts each off at its own.
    returns = lambda_returns(
        rollout.rewards,
        values,
        gamma=config.gamma,
        trace_lambda=config.trace_lambda,
        ends=rollout.ends,
        bootstrap_at_cap=config.bootstrap_at_cap,
    )
    return values, returns


def _td_loss(part: _Part, rollout: _Rollout, returns: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """((T, B) Q of what was chosen, mean squared distance of them from their returns)."""
    if part.supervised:
        return torch.zeros_like(returns), torch.zeros((), device=returns.device)

    def of_chosen(table: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        return table.gather(1, action[:, None])[:, 0]

    rows = torch.stack([of_chosen(part.table.rows, action) for action in rollout.actions])
    acted = zip(rollout.observed, rollout.actions, strict=False)
    positions = torch.stack([of_chosen(seen.positions, action) for seen, action in acted])
    vectors = _with_gradient(part.towers, part.table, part.chunks, part.with_gradient, rows)
    chosen = functional.embedding(rows, vectors)
    turned = part.scorer.turn(chosen, part.scorer.phases(positions))
    content = (torch.stack(rollout.states) * turned).sum(-1)
    words = torch.stack([of_chosen(part.words, action) for action in rollout.actions])
    q_values = (content + words) * rollout.taken
    squares = (q_values - returns) ** 2
    return q_values, squares.sum() / rollout.taken.sum()


def _ranking(part: _Part, rollout: _Rollout) -> torch.Tensor:
    """Mean ranking loss of the steps that were taken; 0 where nothing is learned from support."""
    loss = torch.zeros((), device=rollout.taken.device)
    if part.ranks:
        for seen, scores, running in zip(rollout.observed, rollout.scores, rollout.taken, strict=False):
            support = part.table.support & seen.free
            loss = loss + _ranking_loss(scores, support, seen.free, running, part.config.ranking_temperature)
    return loss / rollout.taken.sum()


def _start(example: Example, config: TrainConfig, generator: torch.Generator) -> list[int]:
    """Chunks that an episode begins with, in random order: none; or a random part of its support, never all
    of it, and in half of these a chunk that reads like support. One step at least is left.
    """
    if (
        config.exploring_starts == 0
        or torch.rand((), generator=generator, device=generator.device) >= config.exploring_starts
    ):
        return []

    def below(n: int) -> int:
        return int(torch.randint(n, (), generator=generator, device=generator.device))

    order = torch.randperm(len(example.support), generator=generator, device=generator.device).tolist()
    first = [example.support[row] for row in order[: below(min(len(example.support), config.steps))]]
    twins = _twins(example)
    if below(2) and twins and len(first) < config.steps - 1:
        first.insert(below(len(first) + 1), twins[below(len(twins))])
    return first


def _twins(example: Example) -> list[int]:
    """An example's own chunks beside its support that share most words with it: what an agent mistakes."""
    words = {word for row in example.support for word in example.chunks[row].split()}
    others = [row for row in example.own_ids if row not in example.support]
    return sorted(others, key=lambda row: len(words.intersection(example.chunks[row].split())), reverse=True)[
        :_N_TWINS
    ]


def _state_texts(spec: CheckpointSpec, example: Example, chosen: Sequence[int]) -> list[str]:
    if not spec.reads_choices:
        return []
    order = sorted(chosen) if spec.state_order == "document" else chosen
    return [example.chunks[chunk_id] for chunk_id in order]


def _embed_candidates(
    towers: TrainableTowers, table: _Table, *, with_gradient: bool
) -> tuple[torch.Tensor, set[str]]:
    """((texts, D) online vectors of all distinct texts, the texts whose vectors carry a gradient)."""
    hot = table.own_texts() if with_gradient else set()
    order = sorted(range(len(table.texts)), key=lambda i: table.texts[i] in hot)
    n_cold = len(table.texts) - len(hot)
    with torch.no_grad():
        cold = towers.embed_chunks([table.texts[i] for i in order[:n_cold]])
    warm = towers.embed_chunks([table.texts[i] for i in order[n_cold:]])
    return torch.cat([cold, warm])[torch.argsort(torch.tensor(order)).to(towers.device)], hot


def _with_gradient(
    towers: TrainableTowers, table: _Table, chunks: torch.Tensor, hot: set[str], rows: torch.Tensor
) -> torch.Tensor:
    """The vectors again, those of the chosen rows with a gradient."""
    missing = [row for row in sorted(set(rows.flatten().tolist())) if table.texts[row] not in hot]
    if not missing:
        return chunks
    return chunks.index_copy(
        0,
        torch.tensor(missing, device=towers.device),
        towers.embed_chunks([table.texts[row] for row in missing]),
    )


def _state_values(scores: torch.Tensor, alpha: float, config: TrainConfig) -> torch.Tensor:
    """(B,) soft values (eq. 4), or the largest Q without soft values; 0 where nothing is left to choose."""
    best = _best(scores, config.top_k_actions).values
    values = alpha * torch.logsumexp(best / alpha, 1) if config.soft_values else best[:, 0]
    return torch.where(scores.amax(1) > _MASKED / 2, values, 0.0)


def _explore(
    scores: torch.Tensor, alpha: float, top_k: int | None, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """((B,) actions sampled from the Boltzmann policy (eq. 3) over the best chunks, (B,) its entropy)."""
    best = _best(scores, top_k)
    below_best = best.values - best.values[:, :1]
    policy = (below_best / alpha).softmax(1)
    drawn = torch.multinomial(policy, 1, generator=generator)
    actions = best.indices.gather(1, drawn)[:, 0]
    surprise = -policy.clamp_min(1e-12).log()
    return actions, (policy * surprise).sum(1)


def _best(scores: torch.Tensor, top_k: int | None) -> torch.return_types.topk:
    return scores.topk(min(top_k or scores.shape[1], scores.shape[1]), 1)


def _ranking_loss(
    scores: torch.Tensor, support: torch.Tensor, free: torch.Tensor, running: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Sum over running states with support left of -log p, p: that the policy at `temperature` takes some."""
    logits = scores / temperature
    of_wanted = torch.logsumexp(logits.masked_fill(~support, _MASKED), 1)
    of_free = torch.logsumexp(logits.masked_fill(~free, _MASKED), 1)
    return torch.where(running & support.any(1), of_free - of_wanted, 0.0).sum()
