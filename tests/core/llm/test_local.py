"""A transformers model that the test made: streaming, counting, taking turns, cancelling."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from core.base.errors import BadCheckpoint, BadRequest
from core.llm.draft import Draft
from core.llm.probe import Greeting, probe
from core.llm.protocol import LlmCancelled, LlmError, Message, NotAnswered, Sampling, UnfitReply
from tests.tiny_causal import NO_SYSTEM, TEMPLATE, save_tiny_causal

if TYPE_CHECKING:
    from core.llm.local import LocalLlm

ASKED = [Message("system", "Be brief."), Message("user", "Is it so?")]
PROMPT = "<system>Be brief.</s><user>Is it so?</s><assistant>"


@pytest.fixture(scope="module")
def llm(tiny_causal: Path) -> LocalLlm:
    from core.llm.local import LocalLlm  # takes seconds: not for every worker that collects

    return LocalLlm(str(tiny_causal), "cpu")


def test_a_reply_is_streamed_and_counted_by_the_tokenizer(llm: LocalLlm) -> None:
    draft, seen = Draft(), []
    cancelled = lambda: seen.append(draft.text) is not None  # noqa: E731
    reply = llm.chat(ASKED, Sampling(max_tokens=40), draft=draft, cancelled=cancelled)
    assert llm.name == "tiny-causal"
    assert reply.text.startswith(draft.text)
    assert len({*seen}) > 1
    assert (reply.completion_tokens, reply.counted_by) == (40, "tokenizer")
    assert reply.prompt_tokens == len(PROMPT.replace("</s>", "")) + 2, (
        "every byte is a token, and so is each end of a turn"
    )
    assert llm.chat(ASKED, Sampling(max_tokens=40)).text == reply.text


def test_the_loop_over_tokens_gives_what_transformers_gives(llm: LocalLlm) -> None:
    ids = torch.tensor([llm._prompt(ASKED)])
    whole = llm._model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=30)[
        0, ids.shape[1] :
    ]
    assert llm.chat(ASKED, Sampling(max_tokens=30)).text == llm._text(whole.tolist())


def test_sampling_is_decided_by_its_seed_and_leaves_others_alone(llm: LocalLlm) -> None:
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    warm = [llm.chat(ASKED, Sampling(temperature=1.0, max_tokens=20, seed=seed)).text for seed in (1, 1, 2)]
    assert warm[0] == warm[1] != warm[2]
    cold = [llm.chat(ASKED, Sampling(temperature=t, max_tokens=20, seed=1)).text for t in (0.0, 1e-300)]
    assert cold[0] == cold[1]
    assert torch.equal(torch.random.get_rng_state(), before)


def test_one_reply_at_a_time_and_cancelling_while_another_goes_on(llm: LocalLlm) -> None:
    replies: list[str] = []
    long = threading.Thread(target=lambda: replies.append(llm.chat(ASKED, Sampling(max_tokens=300)).text))
    with llm._busy:
        long.start()
        began = time.monotonic()
        with pytest.raises(LlmCancelled):
            llm.chat(ASKED, cancelled=lambda: time.monotonic() - began > 0.2)
        assert time.monotonic() - began < 1
        assert replies == []
    long.join()
    assert len(replies) == 1


def test_cancelling_ends_a_reply_between_two_tokens(llm: LocalLlm) -> None:
    draft = Draft()
    with pytest.raises(LlmCancelled):
        llm.chat(ASKED, Sampling(max_tokens=400), draft=draft, cancelled=lambda: len(draft.text) >= 3)
    assert llm._busy.acquire(timeout=1), "it does not go on in the background"
    llm._busy.release()


def test_what_is_too_long_is_told_before_anything_is_computed(llm: LocalLlm) -> None:
    with pytest.raises(
        LlmError,
        match=r"tiny-causal reads at most 4,096 tokens and was given 5,0\d\d; ask over less evidence",
    ):
        llm.chat([Message("user", "x" * 5000)])


def test_a_model_that_knows_no_json_is_told_apart_from_one_that_fails(
    llm: LocalLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)  # as where it isn't installed
    with pytest.raises(
        UnfitReply, match="tiny-causal twice gave no usable JSON object: it was cut off after 5 tokens"
    ):
        llm.chat(ASKED, Sampling(max_tokens=5), schema=Greeting)
    assert probe(llm) is None


def test_templates_without_system_and_models_without_template(tmp_path: Path) -> None:
    from core.llm.local import LocalLlm

    strict = LocalLlm(str(save_tiny_causal(tmp_path / "strict", template=NO_SYSTEM)), "cpu")
    assert strict._text(strict._prompt(ASKED)) == "<user>Be brief.\n\nIs it so?<assistant>"
    plain = LocalLlm(str(save_tiny_causal(tmp_path / "plain", template=None)), "cpu")
    assert plain._text(plain._prompt(ASKED)) == "system: Be brief.\n\nuser: Is it so?\n\nassistant:"


def test_a_template_may_begin_the_thoughts(tmp_path: Path) -> None:
    from core.llm.local import LocalLlm

    folder = save_tiny_causal(tmp_path, template=TEMPLATE.replace("<assistant>", "<assistant><think>\n"))
    draft = Draft()
    with pytest.raises(NotAnswered, match="spent its 20 tokens thinking; allow longer replies"):
        LocalLlm(str(folder), "cpu").chat(ASKED, Sampling(max_tokens=20), draft=draft)
    assert (draft.text, bool(draft.thoughts)) == ("", True)


def test_what_is_no_model_or_lacks_weights_is_refused(tmp_path: Path) -> None:
    from core.llm.local import LocalLlm

    with pytest.raises(BadCheckpoint, match="'no/such-model' is no local folder"):
        LocalLlm("no/such-model")
    with pytest.raises(BadRequest, match="the language model's name has 300 characters"):
        LocalLlm("x" * 300)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadCheckpoint, match="empty is no language model that transformers loads"):
        LocalLlm(str(tmp_path / "empty"))
    config = json.loads((save_tiny_causal(tmp_path / "short") / "config.json").read_text())
    (tmp_path / "short" / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    with pytest.raises(BadCheckpoint, match=r"short lacks 9 of its weights, model\.layers\.1"):
        LocalLlm(str(tmp_path / "short"))


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    from core.llm.local import LocalLlm

    folder = save_tiny_causal(tmp_path / "pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(BadCheckpoint, match="pickled is no language model"):
        LocalLlm(str(folder))
