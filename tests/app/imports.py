"""What a server and the commands beside it import, to be imported before they are forked. Starts no thread of
Python's.
"""

import threading

import app.build
import app.start
import core.answer.reader  # with torch, which an app imports once it shows its pages
import core.cli
import core.encode.traced
import core.resrag.policy

__all__ = ["app", "core"]
assert threading.active_count() == 1, "a fork would lose what other threads do"
