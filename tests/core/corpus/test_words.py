"""What search finds words by, in many scripts and spellings."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from threading import Thread

import bm25s
import numpy as np
import pytest

from core.corpus.bm25 import WordIndex, word_index
from core.corpus.words import located, words_of

SAME = [
    ("The sum is 4,815,162 marks.", "4815162"),
    ("The sum is 4.815.162 marks.", "4815162"),
    ("The sum is 4 815 162 marks.", "4,815,162"),
    ("The sum is 4'815'162 marks.", "4\u202f815\u202f162"),
    ("The sum is ４８１５ marks.", "4815"),
    ("Fault K-2210: no oil.", "k2210"),
    ("Fault k2210: no oil.", "K-2210"),
    ("Fault K 2210: no oil.", "k2210"),
    ("call open_gate_slowly()", "gate"),
    ("call openGateSlowly()", "open_gate_slowly"),
    ("it needs release 5.10.3", "5.10.3"),
    ("write to ann.hill@quay.example", "ann.hill@quay.example"),
    ("ann.hill@quay.example answers", "hill"),
    ("the com\u00admit\u00adtee sat", "committee"),
    ("the com\u200bmittee sat", "committee"),
    ("the re\u0301sume\u0301 came", "résumé"),
    ("the résumé came", "resume"),
    ("an aﬄuent ﬁrm", "affluent firm"),
    ("die Gaſſe und die Straße", "STRASSE"),
    ("Işık yandı", "ISIK"),
    ("ΠΛΟΙΟ στο λιμάνι", "πλοιο"),
    ("паром у причала ещё", "еще"),
    ("الكِتَابُ هنا", "كتاب الكتاب"),
    ("書店は駅前にあります", "駅前の書店"),
    ("ｶﾒﾗ屋", "カメラ"),
    ("등대지기는 섬에 산다", "등대지기"),
    ("ร้านหนังสือปิดวันจันทร์", "หนังสือ"),
    ("ຮ້ານປິດວັນຈັນ", "ວັນຈັນ"),
    ("ហាងបិទថ្ងៃចន្ទ", "ថ្ងៃចន្ទ"),
    ("ဆိုင်ပိတ်သည်", "ပိတ်သည်"),
    ("நூலகம் திறக்கும்", "நூலகம்"),
]


@pytest.mark.parametrize(("text", "query"), SAME)
def test_one_spelling_finds_another(text: str, query: str) -> None:
    assert {*words_of(text)} & {*words_of(query)}


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        (
            ["Blood group A is common.", "Blood group B is rare.", "A group of donors gave blood."],
            "blood group A",
        ),
        (["It is in C.", "It is in C++.", "It is in C#.", "It is in C++17."], "C"),
        (["It is in C++.", "It is in C.", "It is in C#."], "written in C++"),
        (["It is in F#.", "It is in C#.", "It is in F."], "F#"),
        (["The tool is for .NET only.", "The net is for herring only."], ".NET"),
        (["Plots are drawn with R.", "Plots are drawn with S."], "R plots"),
        (["§ 9 Ropes", "§ 8 Nets", "9 boats came"], "§ 9"),
        (["In section 9, ropes.", "In section 8, nets."], "section 9"),
        (["The résumé is short.", "They resume at ten."], "résumé"),
        (["a tank of 10⁶ litres", "a tank of 106 litres"], "10⁶"),
        (["नाव चलती है", "नव वर्ष है"], "नाव"),
        (["茶を飲む", "水を飲む"], "茶"),
        (["see 2.7.1 first", "see 7.1.2 first", "see 1.2.7 first"], "2.7.1"),
        (["hash 9f86d081884c", "hash 9f86d081885c"], "9F86D081884C"),
    ],
)
def test_what_carries_sense_decides(texts: list[str], query: str) -> None:
    scores = WordIndex(texts).scores(words_of(query))
    assert int(np.argmax(scores)) == 0
    assert scores[0] > np.delete(scores, 0).max()


def test_tokens_are_slices_in_order_and_have_the_words_of_the_text() -> None:
    odd = """ McDonald’s "[...]and" (.NET) Anglo-Saxon's x-ray, o'clock. MEET-ING "it's" a--b d-'art vitamin A"""
    text = " ".join(text for text, _ in SAME) + odd
    tokens = list(located(text))
    assert [word for *_, words in tokens for word in words] == words_of(text)
    assert all(start < end <= after for (start, end, _), (after, *_) in pairwise(tokens))
    assert text[tokens[-1][0] : tokens[-1][1]] == "A"


def test_weights_are_those_of_bm25s() -> None:
    texts = [
        "The mill, the inn and the mill.",
        "An inn at 1,234 m",
        "",
        "the",
        "Mill-wright’s mill at Quay No. 7",
    ]
    own = bm25s.BM25()
    own.index([words_of(text) for text in texts], show_progress=False)
    index = WordIndex(texts)
    for query in ("mill", "mill inn mill", "millwright 1234 7"):
        assert np.array_equal(index.scores([*words_of(query), "nowhere"]), own.get_scores(words_of(query)))
    assert [index.frequency(word) for word in ("mill", "inn", "the")] == [2, 2, 0]


def test_kept_words_are_those_that_were_counted(tmp_path: Path) -> None:
    texts = ["渡し船 café E-77", "", "paid 1,234"]
    index = WordIndex(texts)
    index.keep(tmp_path / "words.npz")
    kept = WordIndex.kept(tmp_path / "words.npz", 3)
    for query in ("e77", "1234", "し船", "cafe"):
        assert np.array_equal(kept.scores(words_of(query)), index.scores(words_of(query)))
        assert index.scores(words_of(query)).any()


def test_nobody_waits_for_the_words_of_another_document() -> None:
    class Owner:
        pass

    ready, slow, other = Owner(), Owner(), Owner()
    word_index(ready, lambda: ["a mill"])
    served: list[bool] = []

    def texts() -> list[str]:
        for owner in (ready, other):
            thread = Thread(target=word_index, args=(owner, lambda: ["a bell"]), daemon=True)
            thread.start()
            thread.join(timeout=2)
            served.append(not thread.is_alive())
        return ["a quay"]

    assert word_index(slow, texts).frequency("quay") == 1
    assert served == [True, True]
    assert word_index(ready, texts).frequency("mill") == word_index(other, texts).frequency("bell") == 1
