"""What YAML would change in silence is refused with its line; what is right is read as it is written."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from geco_ray.errors import UserError
from geco_ray.files.yaml_lines import Document, Strictness, is_missing, line_of, read_yaml

TEXT = Strictness("labellings", "text", whole_text=frozenset({"sentences"}), spaced_comments=True)
TYPED = Strictness("cards", as_written=frozenset({"favourable"}), spaced_comments=True)


def read(text: str, strictness: Strictness = TEXT) -> Document:
    return read_yaml(text, lambda line: f"f.yaml:{line}", strictness)


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cn", "Co")), max_size=12)
VALUES = st.recursive(WORDS, lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner), max_leaves=12)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(WORDS, VALUES, min_size=1))
def test_whatever_a_writer_of_yaml_wrote_is_read_back(value: dict[str, object]) -> None:
    assert read(yaml.safe_dump(value, allow_unicode=True, width=2**20)).value == value


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab #:-'\"[]{}?!&*|>\t~é", min_size=1, max_size=30))
def test_no_sentence_is_read_as_another_one(text: str) -> None:
    """A line of a list is read as it stands (blanks aside), as what its quotes hold, or refused, never cut."""
    try:
        (entry,) = read(f"sentences:\n  - x {text}\n").value["sentences"]
    except (UserError, ValueError):
        return
    assert isinstance(entry, dict) or entry.split() == f"x {text}".split()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("sentences:\n  - our #1 cook\n", 2, "takes '#1 cook' for a comment quotes"),
        ("sentences:\n  - a # on the board\n", 2, "for a comment quotes"),
        ("sentences:\n  - a long\n    line # cut\n", 3, "for a comment"),
        ("sentences:\n  - {text: a #1\n      }\n", 2, "for a comment"),
        ("name: corpus #2\n", 1, "takes '#2' for a comment"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' is given twice"),
        ("a: ~\n", 1, "reads '~' as nothing quotes"),
        ("a: [x, null]\n", 1, "reads 'null' as nothing"),
        ("a: said: so\n", 1, "colon quotes"),
        ("a: !important x\n", 1, "no YAML tags '!important'"),
        ("a: &x y\n", 1, "no anchors"),
        ("é: 1\nb: \x07\n", 2, "control characters U+0007"),
        ("? [a]\n: b\n", 1, "a key is a word"),
    ],
)
def test_what_yaml_would_change_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(UserError) as caught:
        read(text)
    assert str(caught.value).startswith(f"f.yaml:{line}")
    assert all(word in str(caught.value) for word in words.split())


def test_comments_apart_and_quoted_signs_are_no_fault() -> None:
    text = "# about\nname: corpus # 2\nsentences: # all of them\n  # one\n  - 'our #1: cook'\n  - C# is x#y\n"
    assert read(text).value == {"name": "corpus", "sentences": ["our #1: cook", "C# is x#y"]}


def test_texts_know_their_lines_and_what_was_left_out() -> None:
    value = read("a: no\nb:\n  - 010\n  -\nc: ''\n").value
    assert value == {"a": "no", "b": ["010", ""], "c": ""}
    assert [line_of(value["a"], 0), line_of(value["b"], 0), line_of(value["b"][0], 0)] == [1, 3, 3]
    assert [is_missing(value["b"][1]), is_missing(value["c"])] == [True, False]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["01", "1.0", "1e3", "TRUE", "yes", "no", "2020-01-01", "0x1F", "None", "NA", "1_000", ".5"]))
def test_values_to_be_compared_as_text_stay_as_they_are_written(written: str) -> None:
    assert read(f"favourable: [{written}]\n", TYPED).value == {"favourable": [written]}


def test_a_cluster_file_may_use_all_of_yaml() -> None:
    document = read("a: &x {n: 1}\nb: *x\nc:\n  <<: *x\n  m: yes\n", Strictness("cluster files", "any"))
    assert document.value == {"a": {"n": 1}, "b": {"n": 1}, "c": {"n": 1, "m": True}}
    assert (document.lines["c", "m"], document.lines["b",]) == (5, 2)
    with pytest.raises(UserError, match="holds itself"):
        read("a: &x [*x]\n", Strictness("cluster files", "any"))
