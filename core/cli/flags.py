"""Flags that several commands share."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from core.base.config import EpisodeConfig, setting_help, worded, words
from core.base.errors import BadRequest
from core.ingest import ReadingConfig
from core.llm import KEY_VARIABLE

if TYPE_CHECKING:
    from core.llm.protocol import Llm

_Read = TypeVar("_Read")


def path_flag(text: str) -> Path:
    """A flag's path; nothing is none, though it would be the folder in which one works."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} must be a path")
    try:
        os.stat(text)
    except OSError as error:
        if error.errno == errno.ELOOP:  # pathlib would make a RuntimeError of it
            raise
    return Path(text)


FILE: dict[str, Any] = {"type": path_flag, "metavar": "FILE"}
FOLDER: dict[str, Any] = {"type": path_flag, "metavar": "DIR"}
JSON_LINES: dict[str, Any] = {"type": path_flag, "metavar": "FILE.jsonl"}
COUNT: dict[str, Any] = {"type": int, "metavar": "N"}
DEVICE: dict[str, Any] = {"metavar": "D", "help": "cpu or cuda (default: cuda when there is one)"}
DATA_FOLDER = FOLDER | {"help": "folder of the data sets (default: $QRAG_DATA)"}
CHECKPOINT: dict[str, Any] = {
    "metavar": "NAME_OR_DIR",
    "help": "the agent (default: narrative, which reads stories; general reads everything else)",
}
LOG_FILE = FILE | {"help": "the log (default: log.duckdb in $QRAG_HOME or ~/.local/share/qrag-explorer)"}
LOG: dict[str, Any] = {"nargs": "?", "const": "", "metavar": "FILE"}
RESULT_AS_JSON: dict[str, Any] = {"action": "store_true", "help": "print the result as one JSON object"}
AS_JSON: dict[str, Any] = {
    "action": "store_true",
    "required": True,
    "help": "the only output format so far",
}
"""What flags of several commands say of themselves: `add("--device", **DEVICE)`."""


def add_inputs(parser: argparse.ArgumentParser, *, with_corpus: bool = False) -> None:
    """What is asked, of which documents."""
    add = parser.add_argument
    add("--query", metavar="TEXT")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--document", **FILE, nargs="+", help="documents, searched as one list")
    listed = "a JSON list of strings, taken as they are"
    source.add_argument("--chunks", type=path_flag, metavar="FILE.json", help=listed)
    each = 'a line {"id", "query", "chunks", if known "support" and "answers"} each'
    source.add_argument("--episodes", **JSON_LINES, help=each)
    if with_corpus:
        source.add_argument("--corpus", **FOLDER, help="what embed-corpus made")
    add_reading(parser)
    agent = "the agent (default: what the app takes for the first document; narrative for given chunks)"
    add("--checkpoint", metavar="NAME_OR_DIR", help=agent)
    add("--device", **DEVICE)
    add("--log", **LOG, help="keep the run in the experiment log")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How documents become text."""
    about = partial(flag_help, ReadingConfig)
    parser.add_argument("--encoding", metavar="NAME", default="", help=about("encoding"))
    kept = about("keep_side_matter").removeprefix("True: ")
    parser.add_argument("--keep-side-matter", action="store_true", help=kept)


def reading_of(args: argparse.Namespace) -> ReadingConfig:
    """As those flags say. Raises BadRequest."""
    return ReadingConfig(encoding=args.encoding, keep_side_matter=args.keep_side_matter)


def add_cluster_flag(parser: argparse.ArgumentParser) -> None:
    """Where workers are."""
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="a Ray cluster to work on, as 10.0.0.1:6379; local starts one of this machine's cores (default:"
        " none, in this process)",
    )


def add_settings(
    parser: argparse.ArgumentParser,
    config: type,
    *,
    with_defaults: bool = True,
    without: Collection[str] = (),
) -> None:
    """A flag for each number and choice of a config, by its name; the words under a setting are its help."""
    kinds = get_type_hints(config)
    for setting in fields(config):
        kind = kinds[setting.name]
        is_choice = get_origin(kind) is Literal
        if setting.name in without or not (is_choice or kind in _NUMBERS):
            continue
        options: dict[str, Any] = {"choices": get_args(kind)} if is_choice else dict(_NUMBERS[kind])
        if with_defaults:
            options["default"] = setting.default
        elif kind == int | None:
            options["default"] = argparse.SUPPRESS  # None is a value
        usual = str(setting.default).lower() if with_defaults else ""
        flag = f"--{setting.name.replace('_', '-')}"
        parser.add_argument(flag, help=flag_help(config, setting.name, usual), **options)


def flag_help(config: type, name: str, usual: str = "") -> str:
    """What is said under a setting, and its usual value."""
    text = setting_help(config).get(name, words(name)).rstrip(".").replace("%", "%%")
    return worded(text, {"None": "none"}) + (f" (default: {usual})" if usual else "")


def add_episode_flags(parser: argparse.ArgumentParser) -> None:
    """How the agent goes about it, as `EpisodeConfig` says it."""
    for name, kind, metavar, default, usual in (
        ("step_budget", int, "N", None, "the checkpoint's"),
        ("temperature", float, "X", None, "the checkpoint's"),
        ("stop_threshold", _number_or_none, "X|none", argparse.SUPPRESS, "the checkpoint's"),
        ("review_threshold", _number_or_none, "X|none", argparse.SUPPRESS, "the checkpoint's"),
        ("seed", int, "N", 0, "0"),
        ("beam_width", int, "N", 1, "1"),
        ("top_k_actions", _count_or_none, "N|none", None, "none"),
    ):
        flag, said = f"--{name.replace('_', '-')}", flag_help(EpisodeConfig, name, usual)
        parser.add_argument(flag, type=kind, default=default, metavar=metavar, help=said)


def add_llm_flags(parser: argparse.ArgumentParser) -> None:
    """Which language model to ask, if any. Its key comes from the environment: everyone can see flags."""
    add = parser.add_argument
    address = "OpenAI-compatible address, or hub for the hub's inference; its key is $QRAG_LLM_KEY"
    local = "a causal language model on this machine, in place of an address"
    most = "most tokens of a reply, thoughts included (default: what each task needs)"
    add("--llm-url", metavar="URL", help=f"{address} (default: no model)")
    add("--llm-model", metavar="NAME", help="what the model is called there")
    add("--llm-local", metavar="DIR_OR_ID", help=local)
    add("--llm-reply-tokens", **COUNT, help=most)


def llm_of(args: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> Llm | None:
    """The language model that the flags name. Raises BadRequest, BadCheckpoint."""
    if args.llm_local is not None:
        if args.llm_url is not None or args.llm_model is not None:
            raise BadRequest("--llm-local excludes --llm-url and --llm-model; name one language model")
        from core.llm.local import LocalLlm  # takes seconds

        return LocalLlm(args.llm_local, getattr(args, "device", None), args.llm_reply_tokens)
    if args.llm_url is None and args.llm_model is None:
        if args.llm_reply_tokens is not None:
            raise BadRequest("--llm-reply-tokens asks no language model; name one, or leave it out")
        return None
    if args.llm_url is None or args.llm_model is None:
        raise BadRequest("--llm-url and --llm-model belong together; give both, or --llm-local")
    from pydantic import SecretStr

    from core.llm.endpoint import connect

    key = SecretStr(environ.get(KEY_VARIABLE, ""))
    return connect(args.llm_url, args.llm_model, key, reply_tokens=args.llm_reply_tokens)


def _number_or_none(text: str) -> float | None:
    return None if text == "none" else read_flag(float, text, "a number, or none")


def _count_or_none(text: str) -> int | None:
    return None if text == "none" else read_flag(int, text, "a whole number, or none")


def read_flag(read: Callable[[str], _Read], text: str, words: str) -> _Read:
    """What a flag's text says. `words`: what it must be, for a sentence that names no function."""
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} must be {words}") from error


_NUMBERS: dict[Any, dict[str, Any]] = {
    int: COUNT,
    float: {"type": float, "metavar": "X"},
    int | None: {"type": _count_or_none, "metavar": "N|none"},
}
"""How a flag's number is read, and what stands for it."""
