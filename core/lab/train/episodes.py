"""Episodes of one part of a batch, and their loss.

Q-RAG algorithm 1, lines 16 to 29. What keeps it cheap: every distinct text of the batch is embedded once per
tower, noise never carries a gradient as a candidate, and the graphs of the states from the rollout serve the
loss, so no state is embedded twice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from core.encode.checkpoint import CheckpointSpec
from core.encode.rope import frequencies, on_grid
from core.lab.tasks.example import Example
from core.lab.train.config import TrainConfig
from core.lab.train.descent import diverged
from core.lab.train.towers import TrainableTowers
from core.methods.qrag.positions import chunk_positions

_MASKED = -1e9
"""Score of what can't be chosen."""
_N_TWINS = 5
"""Of the chunks that read most like support, so many may be taken by mistake."""


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
class Rollout:
    """Episodes as they were played: T steps, and what is seen after the last. Tensors of (T, B) are 0 beyond
    an episode's end.
    """

    observed: list[_Observation]
    """T + 1."""
    states: list[torch.Tensor]
    """(B, D) each, with their graphs."""
    scores: list[torch.Tensor]
    """(B, N) each, with their graphs."""
    actions: list[torch.Tensor]
    """(B,) each; what lies beyond an episode's end means nothing."""
    completed: list[bool]
    """Whether each episode took all its support."""
    ends: torch.Tensor
    """(B,) steps of each."""
    rewards: torch.Tensor
    entropy: torch.Tensor
    """Of the exploring policy, nats."""
    taken: torch.Tensor
    """bool: which steps there are."""
    n_tokens: int
    """Tokens embedded by the online towers, special ones left out."""


@dataclass(frozen=True, eq=False, slots=True)
class Played:
    """What a part of a batch brought. Tensors are (T, B), 0 beyond an episode's end."""

    rollout: Rollout
    loss: torch.Tensor
    td_loss: float
    ranking_loss: float
    q_values: torch.Tensor
    """Online Q of the chosen chunks."""
    values: torch.Tensor
    """V of the states after each choice, by the target towers; the last row only with `bootstrap_at_cap`."""
    returns: torch.Tensor


class _Part:
    """A part of a batch: its examples, padded to (B, N), and the vectors of their distinct texts."""

    def __init__(self, towers: TrainableTowers, examples: Sequence[Example], config: TrainConfig) -> None:
        self.towers, self.examples, self.config = towers, examples, config
        self.scorer = Scorer(towers.spec, towers.dim, towers.device)
        self.supervised = config.objective == "supervised"
        self.ranks = self.supervised or config.ranking_weight > 0
        self.texts = list(dict.fromkeys(text for example in examples for text in example.chunks))
        row = {text: i for i, text in enumerate(self.texts)}
        shape = (len(examples), max(len(example.chunks) for example in examples))
        rows, free, support, shares = (np.zeros(shape, of) for of in (np.int64, bool, bool, np.float32))
        for i, example in enumerate(examples):
            n = len(example.chunks)
            rows[i, :n] = [row[text] for text in example.chunks]
            free[i, :n] = True
            support[i, list(example.support)] = True
            shares[i, : len(example.word_shares)] = example.word_shares
        self.rows, self.free, self.support, word_shares = (
            torch.from_numpy(table).to(towers.device) for table in (rows, free, support, shares)
        )
        self.words = towers.spec.word_weight * word_shares
        own = {text for example in examples for text in example.own_texts}
        self.hot = own if self.ranks else set[str]()
        """Texts whose vectors carry a gradient: as a candidate, noise is not worth one."""
        order = sorted(range(len(self.texts)), key=lambda i: self.texts[i] in self.hot)
        n_cold = len(self.texts) - len(self.hot)
        with torch.no_grad():
            cold = towers.embed_chunks([self.texts[i] for i in order[:n_cold]])
        warm = towers.embed_chunks([self.texts[i] for i in order[n_cold:]])
        self.chunks = torch.cat([cold, warm])[torch.argsort(torch.tensor(order)).to(towers.device)]
        """(texts, D) by the online towers."""

    def with_gradient(self, rows: torch.Tensor) -> torch.Tensor:
        """The vectors of all texts again, those of these rows with a gradient."""
        missing = [row for row in sorted(set(rows.flatten().tolist())) if self.texts[row] not in self.hot]
        if not missing:
            return self.chunks
        vectors = self.towers.embed_chunks([self.texts[row] for row in missing])
        return self.chunks.index_copy(0, torch.tensor(missing, device=self.towers.device), vectors)

    def observe(self, chosen: Sequence[Sequence[int]], free: torch.Tensor) -> _Observation:
        """The states after these choices."""
        spec, texts = self.towers.spec, []
        for example, ids in zip(self.examples, chosen, strict=True):
            order = sorted(ids) if spec.state_order == "document" else ids
            read = [example.chunks[chunk_id] for chunk_id in order] if spec.reads_choices else []
            texts.append((example.question, read))
        return _Observation(texts, self.scorer.positions(self.examples, chosen, free.shape[1]), free.clone())

    def scores(self, states: torch.Tensor, candidates: torch.Tensor, seen: _Observation) -> torch.Tensor:
        """(B, N) Q; states (B, D), candidates (B, N, D)."""
        phases = self.scorer.phases(seen.positions)
        return (self.scorer.scores(states, candidates, phases) + self.words).masked_fill(~seen.free, _MASKED)


def play(
    towers: TrainableTowers,
    examples: Sequence[Example],
    config: TrainConfig,
    alpha: float,
    generator: torch.Generator,
) -> Played:
    """Plays one episode an example with the online towers, and forms the loss. Within `formed`."""
    part = _Part(towers, examples, config)
    rollout = collect(part, alpha, generator)
    values, returns = targets(part, rollout, alpha)
    q_values, td_loss = _td_loss(part, rollout, returns)
    ranking_loss = _ranking(part, rollout)
    return Played(
        rollout=rollout,
        loss=ranking_loss if part.supervised else td_loss + config.ranking_weight * ranking_loss,
        td_loss=float(td_loss.detach()),
        ranking_loss=float(ranking_loss.detach()),
        q_values=q_values.detach(),
        values=values[1:],
        returns=returns,
    )


def collect(part: _Part, alpha: float, generator: torch.Generator) -> Rollout:
    """Plays episodes in lockstep by the exploring policy, or along their support where that is learned."""
    towers, config = part.towers, part.config
    candidates = functional.embedding(part.rows, part.chunks)
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
    free = part.free.clone()
    for i, ids in enumerate(chosen):
        free[i, ids] = False
    observed = [part.observe(chosen, free)]
    states: list[torch.Tensor] = []
    scores: list[torch.Tensor] = []
    actions: list[torch.Tensor] = []
    entropy = torch.zeros((n_steps, len(part.examples)), device=towers.device)
    n_tokens = towers.count_tokens(part.texts)
    for t in range(n_steps):
        seen = observed[t]
        # A state that reads no choices is the question, embedded once.
        states.append(towers.embed_states(seen.texts) if t == 0 or towers.spec.reads_choices else states[0])
        scores.append(part.scores(states[t], candidates, seen))
        n_tokens += towers.count_tokens(text for query, parts in seen.texts for text in (query, *parts))
        with torch.no_grad():
            if part.supervised:
                # Any support that is left, else anything free: past an episode's end, where nothing counts.
                weights = (part.support & free).float() + 1e-9 * free.float() + 1e-30
                action = torch.multinomial(weights, 1, generator=generator)[:, 0]
            else:
                action, entropy[t] = _explore(scores[t], alpha, config.top_k_actions, generator)
        actions.append(action)
        for i, chunk_id in enumerate(action.tolist()):
            if t < ends[i]:
                chosen[i].append(chunk_id)
                free[i, chunk_id] = False
        observed.append(part.observe(chosen, free))
    reward, completed = torch.zeros_like(entropy), []
    for i, (example, ids) in enumerate(zip(part.examples, chosen, strict=True)):
        completed.append(set(example.support) <= set(ids))
        paid = rewards(ids, example.support, penalize_extra_steps=config.penalize_extra_steps)
        reward[: len(paid) - n_given[i], i] = torch.tensor(paid[n_given[i] :])
    taken = torch.arange(n_steps, device=towers.device)[:, None] < ends
    entropy *= taken
    return Rollout(observed, states, scores, actions, completed, ends, reward, entropy, taken, n_tokens)


@torch.no_grad()
def targets(part: _Part, rollout: Rollout, alpha: float) -> tuple[torch.Tensor, torch.Tensor]:
    """((T + 1, B) values of the states, (T, B) returns that Q is pulled towards); zeros where unused.

    Row t of the values is V(s_t), of the state before choice t; the last is that after the last choice.
    """
    towers, config, n_steps = part.towers, part.config, len(rollout.states)
    values = torch.zeros((n_steps + 1, len(part.examples)), device=towers.device)
    if part.supervised:
        return values, torch.zeros_like(rollout.rewards)
    # No gradient may flow into targets, or the loss could fall by moving them: so they come from the slow
    # copies of the towers, or from the online vectors cut off from their graph.
    chunks = towers.embed_chunks(part.texts, target=True) if config.target_towers else part.chunks.detach()
    candidates = functional.embedding(part.rows, chunks)
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
    return values, lambda_returns(rollout.rewards, values, rollout.ends, config)


def rewards(chosen: Sequence[int], support: Collection[int], *, penalize_extra_steps: bool) -> list[float]:
    """Reward of each choice, in order: paid once, when the last support chunk is taken; 0 before and after.

    >>> rewards([7, 3, 5, 4], {3, 5}, penalize_extra_steps=False)
    [0.0, 0.0, 1.0, 0.0]
    """
    missing, out = set(support), []
    for step, chunk_id in enumerate(chosen, start=1):
        completes = missing == {chunk_id}
        missing.discard(chunk_id)
        value = 0.5 + 0.5 * len(support) / step if penalize_extra_steps else 1.0
        out.append(value if completes else 0.0)
    return out


def lambda_returns(
    rewards: torch.Tensor, values: torch.Tensor, ends: torch.Tensor, config: TrainConfig
) -> torch.Tensor:
    """G_t for every step, backwards: G_t = r_t + gamma * ((1 - lambda) V(s_{t+1}) + lambda G_{t+1}).

    rewards (T, B); values (T + 1, B): V(s_0) ... V(s_T), where s_t is the state before step t; ends (B,) int:
    steps of each episode, at most T. Beyond an episode's last step nothing follows, unless
    `bootstrap_at_cap`: then V of the state after it (algorithm 1, line 9). Entries of steps that an episode
    doesn't have are 0. Returns (T, B).
    """
    returns = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[0])
    for t in range(len(rewards) - 1, -1, -1):
        last = ends == t + 1
        at_cap = values[t + 1] if config.bootstrap_at_cap else torch.zeros_like(following)
        continued = (1 - config.trace_lambda) * values[t + 1] + config.trace_lambda * following
        following = rewards[t] + config.gamma * torch.where(last, at_cap, continued)
        following = torch.where(ends > t, following, 0.0)
        returns[t] = following
    return returns


def _td_loss(part: _Part, rollout: Rollout, returns: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """((T, B) Q of what was chosen, mean squared distance of them from their returns)."""
    if part.supervised:
        return torch.zeros_like(returns), torch.zeros((), device=returns.device)

    def of_chosen(table: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        return table.gather(1, action[:, None])[:, 0]

    rows = torch.stack([of_chosen(part.rows, action) for action in rollout.actions])
    acted = zip(rollout.observed, rollout.actions, strict=False)
    positions = torch.stack([of_chosen(seen.positions, action) for seen, action in acted])
    chosen = functional.embedding(rows, part.with_gradient(rows))
    turned = part.scorer.turn(chosen, part.scorer.phases(positions))
    content = (torch.stack(rollout.states) * turned).sum(-1)
    words = torch.stack([of_chosen(part.words, action) for action in rollout.actions])
    q_values = (content + words) * rollout.taken
    squares = (q_values - returns) ** 2
    return q_values, squares.sum() / rollout.taken.sum()


def _ranking(part: _Part, rollout: Rollout) -> torch.Tensor:
    """Mean over steps that were taken of -log p, p: that the policy at the ranking temperature takes support,
    where some is left; 0 where nothing is learned from support.
    """
    loss = torch.zeros((), device=rollout.taken.device)
    if part.ranks:
        for seen, scores, running in zip(rollout.observed, rollout.scores, rollout.taken, strict=False):
            support, logits = part.support & seen.free, scores / part.config.ranking_temperature
            of_wanted = torch.logsumexp(logits.masked_fill(~support, _MASKED), 1)
            of_free = torch.logsumexp(logits.masked_fill(~seen.free, _MASKED), 1)
            loss = loss + torch.where(running & support.any(1), of_free - of_wanted, 0.0).sum()
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


def _state_values(scores: torch.Tensor, alpha: float, config: TrainConfig) -> torch.Tensor:
    """(B,) soft values (eq. 4), or the largest Q without soft values; 0 where nothing is left to choose."""
    best = _best(scores, config.top_k_actions).values
    values = alpha * torch.logsumexp(best / alpha, 1) if config.soft_values else best[:, 0]
    return torch.where(scores.amax(1) > _MASKED / 2, values, 0.0)


def _explore(
    scores: torch.Tensor, alpha: float, top_k: int | None, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """((B,) actions sampled from the Boltzmann policy (eq. 3) over the best chunks, (B,) its entropy). Raises
    BadRequest when the Q-values are no numbers any more.
    """
    best = _best(scores, top_k)
    below_best = best.values - best.values[:, :1]
    policy = (below_best / alpha).softmax(1)
    if not policy.isfinite().all():
        raise diverged()
    drawn = torch.multinomial(policy, 1, generator=generator)
    actions = best.indices.gather(1, drawn)[:, 0]
    surprise = -policy.clamp_min(1e-12).log()
    return actions, (policy * surprise).sum(1)


def _best(scores: torch.Tensor, top_k: int | None) -> torch.return_types.topk:
    return scores.topk(min(top_k or scores.shape[1], scores.shape[1]), 1)
