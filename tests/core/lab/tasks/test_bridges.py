"""Questions made from links between paragraphs."""

from __future__ import annotations

from random import Random

from core.lab.tasks.bridges import MAX_LINKS, MOST_WORDS, TASK, ask, find_links

FERRY = (
    "Grey Heron (ferry): The Grey Heron was a paddle steamer of the Lower Lakes. It carried timber until the"
    " railway came."
)
TOWN = (
    "Port Ellis: Port Ellis is a town on the north shore. Its yard built the Grey Heron, and later nothing"
    " larger than a dinghy."
)
PERSON = "Ines Halloran: Ines Halloran (born 1871) was a Lower Lakes ship builder. She learned at Port Ellis."


def test_a_link_is_a_sentence_that_names_another_paragraph() -> None:
    links = find_links([FERRY, TOWN, PERSON])
    assert [(link.source, link.target, link.name) for link in links] == [
        (1, 0, "Grey Heron"),
        (2, 1, "Port Ellis"),
    ]
    assert links[0].sentence == "Its yard built the Grey Heron, and later nothing larger than a dinghy."
    assert all(link.sentence[link.start :].startswith(link.name) for link in links)


def test_closed_paragraphs_begin_and_end_no_link() -> None:
    assert [link.source for link in find_links([FERRY, TOWN, PERSON], {"Grey Heron (ferry)"})] == [2]
    assert find_links([FERRY, TOWN, PERSON], {"Port Ellis"}) == []


def test_a_longer_word_and_a_part_of_the_own_title_are_no_names() -> None:
    texts = [
        "Port Ellisburg: A village that has nothing to do with Port Ellison.",
        TOWN,
        "Port Ellis Light: It stands before Port Ellis.",
    ]
    assert find_links(texts) == []


def test_no_paragraph_is_asked_about_again_and_again() -> None:
    texts = [TOWN, *(f"Paper number {i}: Somebody wrote from Port Ellis." for i in range(9))]
    assert len(find_links(texts)) == MAX_LINKS


def test_the_question_hides_the_name_and_says_what_it_is() -> None:
    texts = [FERRY, TOWN, PERSON]
    link, _ = find_links(texts)
    questions = set()
    for seed in range(40):
        example = ask(link, texts, Random(seed))
        assert (example.task, example.chunks, example.support, example.answers) == (
            TASK,
            (TOWN, FERRY),
            (0, 1),
            ("Grey Heron",),
        )
        assert "Grey Heron" not in example.question
        assert "this paddle steamer" in example.question
        assert len(example.question.split()) <= 3 * MOST_WORDS + 5
        questions.add(example.question)
    assert len(questions) > 20
    assert any("Port Ellis:" in question for question in questions)
    assert any("Port Ellis" not in question for question in questions)
