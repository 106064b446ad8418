"""Brings the app up.

Its pages first, then the first agent, which opens the sample while a browser loads them. torch is imported
with the agent and not before, see `core.base.later`.
"""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from app.services.explorer import Explorer
from app.services.opener import Opener
from app.services.session import Session
from app.services.settings import USERS_VARIABLE, Settings
from app.services.shared import Services
from app.without_stubs import without_stubs
from core.base.errors import BadRequest
from core.base.home import home, make_folder
from core.base.progress import finish
from core.encode.engine import engine_asked
from core.encode.packaged import reader_asked
from core.lab.tasks.samples import list_samples
from core.llm import KEY_VARIABLE


def start(settings: Settings) -> None:
    """Serves until stopped. Raises UserError for settings that can't work."""
    engine_asked()  # a wrong one would be told when the pages are up,
    reader_asked()  # and a wrong reader with the first answer
    hide_secrets()
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    # after so many events Gradio sums up how long events took, which nobody reads and takes milliseconds
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(10**9))
    # a terminated app closes its log in order, as after Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        files = _own_folder()
    except OSError as error:
        raise BadRequest(
            f"{home()} can't be written to ({error.strerror}); set QRAG_HOME to another folder"
        ) from error
    services = Services(settings)
    beside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="start")
    try:
        with without_stubs():
            from app.build import build_web_app  # with Gradio, which reads the environment
            from app.web import Serving, listen

        listening = listen(settings.host, settings.port)
        serving = Serving(build_web_app(services), listening)
        print(f"The app is at {serving.url}", flush=True)
        agent = beside.submit(services.agents.load, services.agents.default_checkpoint)
        beside.submit(_open_sample, services)
        with suppress(KeyboardInterrupt):
            encoder = agent.result().encoder  # a checkpoint that can't be used ends the start
            print(f"Chunks are embedded by {encoder.engine}.", flush=True)
            # the first state waits a second for its pass to be traced
            beside.submit(encoder.encode_states, [encoder.state_tokens("", [])])
            beside.submit(getattr, services, "reader")  # the first answer would wait for it
            beside.submit(_freeze)
            serving.wait()
        serving.close()
    finally:
        beside.shutdown(wait=False, cancel_futures=True)
        services.close()
        shutil.rmtree(files, ignore_errors=True)
    sys.stdout.flush()
    # all is closed; the interpreter's own shutdown would only list what the server's threads still hold
    os._exit(0)


def hide_secrets() -> None:
    """Processes that read strangers' files must not inherit passwords."""
    for secret in (USERS_VARIABLE, KEY_VARIABLE):
        os.environ.pop(secret, None)


def _own_folder() -> Path:
    """Of this process alone, for uploads and what is handed out: all Gradio apps of a machine share one
    folder. It is locked while the process lives; those of killed ones go at the next start.
    """
    folder = home() / "files"
    make_folder(folder)
    for left in folder.iterdir():
        with suppress(OSError):  # another start has just removed it, or it is in use
            descriptor = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(descriptor)
    own = tempfile.mkdtemp(dir=folder)
    fcntl.flock(os.open(own, os.O_RDONLY), fcntl.LOCK_EX)
    os.environ["GRADIO_TEMP_DIR"] = own
    return Path(own)


def _open_sample(services: Services) -> None:
    """Embeds the sample of a first visit while the visitor is still on the way."""
    opener = Opener(Explorer(services), Session(), services.agents.default_checkpoint)
    finish(opener.sample(list_samples()[0].key))


def _freeze() -> None:
    """Libraries and weights stay: going over them again, all visitors would wait half a second."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.collect()  # counts what is left: how often the collector looks for garbage goes by that
