"""A look of the shipped agent beside a busy Python thread.

As when a page is drawn or a document is read for somebody else. Compared with the same tower as transformers
runs it, called from Python. States of 60 and 250 tokens; alone, and beside one thread that counts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import torch
from torch import nn

from benchmarks import Row, median_seconds
from core.encode.checkpoint import find_base, find_checkpoint, read_spec
from core.encode.device import compute_dtype, find_device
from core.encode.passes import Pass, padded_rows, pooled_vectors, traced
from core.encode.tokens import FastTokenizer
from core.encode.weights import load_towers

N_TOKENS = (60, 250)
REPEATS = 5


def rows() -> list[Row]:
    """Milliseconds a pass."""
    folder = find_checkpoint(None)
    spec, device = read_spec(folder), find_device(None)
    tower = load_towers(folder, spec).state.to(device, compute_dtype(spec, device))
    plain = Pass(tower, partial(pooled_vectors, spec=spec))
    quick = traced(plain)
    pad_id = FastTokenizer(find_base(spec.base, folder)).pad_id

    @torch.inference_mode()
    def look(state_pass: nn.Module, n_tokens: int) -> None:
        state_pass(*padded_rows([list(range(1_000, 1_000 + n_tokens))], tower, pad_id))

    out = []
    for n_tokens in N_TOKENS:
        works = {"ours": partial(look, quick, n_tokens), "theirs": partial(look, plain, n_tokens)}
        for where, others in (("alone", 0), ("beside a busy thread", 1)):
            with (
                _counting(others),
                ThreadPoolExecutor(1) as thread,
            ):  # a server's work is not done in the main thread, which gets the lock sooner
                seconds = thread.submit(median_seconds, works, REPEATS).result()
            ratio = seconds["ours"] / seconds["theirs"]
            out.append(
                Row(
                    f"a state of {n_tokens} tokens, {where}",
                    1000 * seconds["ours"],
                    "ms",
                    "as transformers runs it",
                    ratio,
                )
            )
    return out


@contextmanager
def _counting(n: int) -> Iterator[None]:
    """Threads that do nothing but Python."""
    over = threading.Event()

    def count() -> None:
        total = 0
        while not over.is_set():
            total += 1

    threads = [threading.Thread(target=count) for _ in range(n)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
