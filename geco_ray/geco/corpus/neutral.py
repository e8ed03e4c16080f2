"""The neutral form of a labelled sentence by rule (GECOBench, data set section), and how far the rules carry.

Two styles. ``paper`` follows the rules by which the released neutral rows were made, with their known faults: where
only the female word was labelled, possessive "her" becomes "them", and a verb loses its last letter ("tries" becomes
"trie"). ``english`` uses the source's male word to tell "her" (their) from "her" (them) and spells verbs properly.
Forms that an author gave always win over the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from geco_ray.errors import UserError
from geco_ray.geco.corpus.neutral_words import BETWEEN, IRREGULAR_VERBS, NOT_VERBS, NOUNS, PAPER_VERBS, PRONOUNS

if TYPE_CHECKING:
    from geco_ray.geco.corpus.labelling import Label

Style = Literal["paper", "english"]


def looks_like_verb(word: str) -> bool:
    """Whether a word that follows "they" is likely a verb in the third person singular: it ends in a single s."""
    text = word.lower()
    return text in IRREGULAR_VERBS or (
        text.isalpha() and text[-1] == "s" and text[-2:] != "ss" and text not in NOT_VERBS
    )


@dataclass(frozen=True)
class NeutralRules:
    """How neutral forms are derived.

    Attributes:
        style: ``paper`` or ``english``, see the module.
        words: word in lower case to neutral form; tried after the pronouns.
        is_verb: decides whether the word after a pronoun is a verb that must agree with "they".
        between: words that may stand between the pronoun and its verb, besides those in -ly.
        unknown: a gendered word that no rule knows is refused, or keeps the source's form in every class.
    """

    style: Style = "english"
    words: Mapping[str, str] = field(default_factory=lambda: NOUNS)
    is_verb: Callable[[str], bool] = looks_like_verb
    between: frozenset[str] = BETWEEN
    unknown: Literal["refuse", "keep"] = "refuse"

    def form(self, word: str, *, possessive: bool = False) -> str | None:
        """The neutral form of one word with its capital kept, or None when no rule knows it."""
        key = word.strip().lower()
        found = PRONOUNS.get(key) or self.words.get(key)
        if found is None:
            return None
        if possessive and key == "her":
            found = "their"
        if self.style == "paper" and found == "Mx.":
            found = "Mx. "  # the released cell ends in a blank
        return _capitals(found) if word.strip()[0].isupper() else found

    def plural_verb(self, verb: str) -> str:
        """The form of a third person singular verb after "they"."""
        key = verb.lower()
        found = IRREGULAR_VERBS.get(key) or (PAPER_VERBS.get(key) if self.style == "paper" else None)
        if found is None:
            found = key[:-1] if self.style == "paper" else _bare_verb(key)
        return found[0].upper() + found[1:] if verb[0].isupper() else found


def _capitals(form: str) -> str:
    return " ".join(part[:1].upper() + part[1:] for part in form.split(" "))


def _bare_verb(verb: str) -> str:
    if verb.endswith("ies") and len(verb) > 4:
        return verb[:-3] + "y"
    if re.search(r"(ss|sh|ch|x|zz|o)es$", verb) and verb not in ("aches", "shoes", "axes"):
        return verb[:-2]
    return verb[:-1]


def neutral_labels(
    words: Sequence[str],
    male: Mapping[int, Label],
    female: Mapping[int, Label],
    given: Mapping[int, Label],
    rules: NeutralRules,
    where: str = "",
) -> dict[int, Label]:
    """Neutral labels of one version: those ``given``, and by rule for every other labelled position.

    Per position with male label m and female label f: both forms and equal, or both the same tag: copied; both forms
    and different: the neutral form of m; only one: the neutral form of that one; a form that no rule knows: nothing,
    the source word stays. After a pronoun made by rule the next word, or the one after an adverb, is put in the plural
    when it is a verb.

    Raises:
        UserError: a gendered word has no neutral form and is not to be kept; with the sentence's place.
    """
    from geco_ray.geco.corpus.labelling import Label

    labels = dict(given)
    pronouns = []
    for position in sorted({*male, *female} - set(given)):
        m, f = male.get(position), female.get(position)
        if m == f and m is not None:
            labels[position] = m
            continue
        form = _form_by_rule(words, position, m, f, rules, where)
        if form is not None:
            labels[position] = Label(form=form)
            if form.lower() in ("they", "them", "their", "theirs"):
                pronouns.append(position)
    for position in pronouns:
        _agree(words, position, labels, rules)
    return labels


def _form_by_rule(
    words: Sequence[str], position: int, male: Label | None, female: Label | None, rules: NeutralRules, where: str
) -> str | None:
    """The neutral form of a position's male or else female form; None for a tag, or a word that stays as it is."""
    chosen = next((label.form for label in (male, female) if label is not None and label.form is not None), None)
    if chosen is None:
        return None
    possessive = rules.style == "english" and male is None and words[position].lower() == "his"
    form = rules.form(chosen, possessive=possessive)
    if form is None and rules.unknown == "refuse":
        raise UserError(
            f"no rule gives the neutral form of {chosen!r} (word {position})",
            where=where or None,
            remedy="Write the neutral form into the labelling, or add the word to the rules.",
        )
    return form


def _agree(words: Sequence[str], position: int, labels: dict[int, Label], rules: NeutralRules) -> None:
    from geco_ray.geco.corpus.labelling import Label

    made = labels[position].form
    subject = made is not None and made.lower() == "they"
    if rules.style == "english" and not subject:
        return
    after = position + 1
    if after < len(words) and (words[after].lower() in rules.between or words[after].endswith("ly")):
        after += 1
    if after >= len(words) or after in labels:
        return
    # After "them" and "their" a plural noun is likelier than a verb, so only verbs that cannot be nouns count.
    if rules.is_verb(words[after]) if subject else words[after].lower() in IRREGULAR_VERBS:
        labels[after] = Label(form=rules.plural_verb(words[after]))
