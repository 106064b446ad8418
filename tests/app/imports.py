"""What a server and the commands beside it import, and the models that ship, to be there before they are forked.

Starts no thread.
"""

import os

import torch

import app.build
import app.pages.train.actions
import app.start
import core.answer.reader  # with torch, which an app imports once it shows its pages
import core.cli
import core.encode.traced
import core.resrag.policy
from core.answer.reader import load_reader
from core.encode.encoder import load_encoder

__all__ = ["app", "core"]

# beside busy workers a training of low priority would get hardly any time
app.pages.train.actions.NICENESS = 0


def n_threads() -> int:
    return len(os.listdir("/proc/self/task"))  # a library has one of its own


BEFORE, CORES = n_threads(), torch.get_num_threads()
torch.set_num_threads(1)  # others would begin threads for the first product
READER, *ENCODERS = load_reader(device="cpu"), load_encoder("narrative", "cpu"), load_encoder("base", "cpu")
"""Who asks for one of them gets it, for it is in use here."""
for encoder in ENCODERS:
    encoder.encode_states([encoder.state_tokens("", [])])  # which traces it
torch.set_num_threads(CORES)
assert n_threads() == BEFORE, "a fork would lose what other threads do"
