"""Shards and encoders in workers of a Ray cluster.

`--cluster local` starts a cluster of this machine's cores and ends it with the command; any other address is
one that runs. A worker that dies is started again, on another machine where its own is gone, and asked again;
its files must lie under the same path on every machine. A shard that can't be read, or gives no answer in
time, ends the run with a sentence that names it. Whoever reaches a Ray cluster can run programs on it: it
belongs behind a firewall.
"""

from __future__ import annotations

import os
import socket
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from core.base.errors import BadRequest, UserError, quoted
from core.encode.checkpoint import CheckpointSpec
from core.integrations.cluster.parts import CorpusParts
from core.integrations.cluster.shard import Shard, ShardSetting
from core.integrations.cluster.sharded import LocalShards, ShardedIndex, shard_settings

_Result = TypeVar("_Result")
LOCAL = "local"
STORE_BYTES = 500_000_000
"""Of shared memory on a cluster that a command starts: what is sent to the workers and back."""
STARTS = 3
"""Starts of a cluster of this machine's cores: Ray waits half a minute, short on a busy machine."""
ANSWER_SECONDS = 300.0
"""How long a shard may take, a worker's start included."""
RETRIES = 3
"""Of a task, when the worker that has it in hand dies."""
NODE_SECONDS = 3.0
"""How long a machine may take to let itself be connected to."""


@contextmanager
def joined_cluster(address: str | None) -> Iterator[None]:
    """This process as driver of a cluster, unless it is one already, or no address is given."""
    if address is None:
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before ray is imported, which else reports home
    try:
        import ray
        from ray._private import worker
    except ModuleNotFoundError as error:
        raise BadRequest(
            "--cluster needs the package ray; run pip install -e '.[cluster]', or leave the flag out"
        ) from error
    worker._worker_logs_enabled = False  # else notices, as of a lost machine, go to stdout between results
    if ray.is_initialized():
        yield
        return
    started: dict[str, Any] = {"address": address}
    if address == LOCAL:
        started = {"num_cpus": os.cpu_count(), "object_store_memory": STORE_BYTES, "include_dashboard": False}
    for tries_left in reversed(range(STARTS if address == LOCAL else 1)):
        try:
            ray.init(**started, log_to_driver=False, logging_level="ERROR")
            break
        except Exception as error:  # it fails in more ways than it names
            ray.shutdown()
            if tries_left:
                continue
            raise BadRequest(
                f"no Ray cluster of this machine's cores started in time{quoted(str(error))}; try again when"
                " the machine is less busy, or leave --cluster out"
                if address == LOCAL
                else f"no Ray cluster answers at {address!r}; start one (ray start --head), or give --cluster"
                f" {LOCAL}"
            ) from error
    try:
        yield
    finally:
        ray.shutdown()


def n_cores() -> int:
    """Of all machines of the cluster that can be reached: Ray counts a lost one for some 17 seconds more, and
    a worker that is wanted there waits for a core that nobody has.
    """
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"] and _answers(node)]
    return max(1, int(sum(node["Resources"].get("CPU", 0) for node in nodes)))


def _answers(node: dict[str, Any]) -> bool:
    address = node["NodeManagerAddress"], node["NodeManagerPort"]
    try:
        socket.create_connection(address, NODE_SECONDS).close()
    except OSError:
        return False
    return True


def task_results(
    kind: type, arguments: tuple[Any, ...], method: str, tasks: Sequence[Any], cluster: str | None
) -> Iterator[tuple[int, Any]]:
    """(place in `tasks`, result) of each task as it is done: what `method` of a `kind` makes of it. In this
    process without a cluster, else in workers with an object each; a task in a worker that dies is done by
    a new one. Raises what the object raises, and BadRequest where they die over a task again and again.
    """
    if not tasks:
        return
    if cluster is None:
        yield from enumerate(map(getattr(kind(*arguments), method), tasks))
        return
    with joined_cluster(cluster):
        import ray
        from ray.exceptions import RayActorError, RayTaskError

        new_worker = ray.remote(kind).options(num_cpus=1).remote
        waiting, deaths = deque(enumerate(tasks)), Counter[int]()
        idle = [new_worker(*arguments) for _ in range(min(n_cores(), len(tasks)))]
        under_way: dict[Any, tuple[int, Any, Any]] = {}
        try:
            while waiting or under_way:
                while idle and waiting:
                    worker, (place, task) = idle.pop(), waiting.popleft()
                    under_way[getattr(worker, method).remote(task)] = place, task, worker
                while idle:  # a successor of one whose machine is lost may wait for this core
                    ray.kill(idle.pop())
                [done], _ = ray.wait([*under_way], num_returns=1)
                place, task, worker = under_way.pop(done)
                idle.append(worker)
                try:
                    result = ray.get(done)
                except RayTaskError as error:
                    if isinstance(error.cause, UserError):
                        raise error.cause from error
                    raise
                except RayActorError as error:
                    deaths[place] += 1
                    if deaths[place] > RETRIES:
                        raise BadRequest(
                            f"{deaths[place]} workers died over one task; give their machines more memory,"
                            " then run the command again"
                        ) from error
                    ray.kill(idle.pop())  # it may only have been out of reach
                    waiting.appendleft((place, task))
                    idle.append(new_worker(*arguments))
                else:
                    yield place, result
        finally:
            for worker in (*idle, *(worker for _, _, worker in under_way.values())):
                ray.kill(worker)


def in_order(results: Iterable[tuple[int, _Result]]) -> Iterator[_Result]:
    """What `task_results` yields, in the order of the tasks."""
    early: dict[int, _Result] = {}
    turn = 0
    for place, result in results:
        early[place] = result
        while turn in early:
            yield early.pop(turn)
            turn += 1


def check_vectors(made: Mapping[str, str], by_name: dict[str, str]) -> None:
    """Adds what one worker `made`, fingerprints of vectors by checkpoint, to those of all so far. Raises
    BadRequest where machines compute different vectors under one checkpoint.
    """
    for checkpoint, vectors in made.items():
        if by_name.setdefault(checkpoint, vectors) != vectors:
            raise BadRequest(
                f"{checkpoint} makes vectors {vectors} on one machine of the cluster and"
                f" {by_name[checkpoint]} on another; use the same engine (QRAG_ENGINE) everywhere"
            )


class RayShards:
    """Shards in workers. Ends them when it is closed."""

    def __init__(self, settings: Sequence[ShardSetting]) -> None:
        import ray

        # asked again without end: while a lost machine goes unnoticed, asking fails at once
        worker = ray.remote(Shard).options(num_cpus=1, max_restarts=-1, max_task_retries=-1)
        self._settings = settings
        self._workers = [worker.remote(setting) for setting in settings]

    def ask_all(self, name: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """See `Shards`. Raises BadRequest for a shard that is gone, and what a shard raises."""
        asked = zip(self._workers, arguments, strict=True)
        answers = [getattr(worker, name).remote(*argument) for worker, argument in asked]
        return [self._answer(shard, answer) for shard, answer in enumerate(answers)]

    def ask(self, shard: int, name: str, *arguments: Any) -> Any:
        """See `Shards`. Raises as `ask_all` does."""
        return self._answer(shard, getattr(self._workers[shard], name).remote(*arguments))

    def keep(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        import ray

        return [ray.put(array) for array in arrays]

    def close(self) -> None:
        """Gives the workers back to the cluster."""
        import ray

        for worker in self._workers:
            ray.kill(worker)

    def _answer(self, shard: int, answer: Any) -> Any:
        import ray
        from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

        try:
            return ray.get(answer, timeout=ANSWER_SECONDS)
        except RayTaskError as error:
            if isinstance(error.cause, UserError):
                raise error.cause from error
            raise
        except (GetTimeoutError, RayActorError) as error:
            setting = self._settings[shard]
            raise BadRequest(
                f"shard {shard + 1} of {len(self._workers)}, parts {setting.first} to {setting.last - 1} of"
                f" {setting.folder}, gives no answer, so not all chunks can be searched; see with `ray"
                " status` whether the cluster has a free core for it"
            ) from error


@contextmanager
def opened_index(parts: CorpusParts, spec: CheckpointSpec, address: str | None) -> Iterator[ShardedIndex]:
    """A corpus's index: here without an address, else in that cluster, a shard a core."""
    if address is None:
        settings = shard_settings(parts, spec, 1)
        yield ShardedIndex(parts, settings, LocalShards(settings))
        return
    with joined_cluster(address):
        settings = shard_settings(parts, spec, n_cores())
        shards = RayShards(settings)
        try:
            yield ShardedIndex(parts, settings, shards)
        finally:
            shards.close()
