"""Word lists of the neutral rules: pronouns, nouns and verbs (pairs and forms as seen in the released GECO data)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

PRONOUNS: Mapping[str, str] = MappingProxyType(
    {
        "he": "they",
        "she": "they",
        "him": "them",
        "her": "them",
        "his": "their",
        "hers": "theirs",
        "himself": "themself",
        "herself": "themself",
    }
)

_NOUNS = """
father mother parent|fathers mothers parents|stepfather stepmother stepparent|step-father step-mother stepparent
grandfather grandmother grandparent|great-grandfather great-grandmother great-grandparent
fatherhood motherhood parenthood|paternal maternal parental|dad mum parent|papa mama parent|padre madre parent
brother sister sibling|brothers sisters siblings|half-brother half-sister half-sibling
brother-in-law sister-in-law sibling-in-law|son daughter child|sons daughters children
grandson granddaughter grandchild|son-in-law daughter-in-law child-in-law|nephew niece sibling's child
nephews nieces siblings' children|uncle aunt parent's sibling|uncles aunts parents' siblings|husband wife spouse
husbands wives spouses|widower widow surviving spouse|fiancé fiancée betrothed|boyfriend girlfriend partner
bachelor bachelorette single person|bridegroom bride newlywed|groom bride newlywed|master mistress partner
masters mistresses partners|man woman person|men women people|boy girl child|boys girls children
boyish girlish childlike|male female person|males females people|gentleman lady person|gentlemen ladies people
fellow lass person|lad lass youngster|mister miss Mx|mr mrs Mx|mr. mrs. Mx.|mr ms Mx|mr. ms. Mx.
sir madam esteemed person|monsieur mademoiselle esteemed person|madame madame esteemed person|king queen monarch
kings queens monarchs|prince princess royal|princes princesses royals|emperor empress sovereign|lord lady noble
lords ladies nobles|duke duchess noble|count countess noble|baron baroness noble|marquis marchioness noble
don dona noble|knight dame noble|chieftain chieftainess chief|heir heiress heir|god goddess deity
gods goddesses deities|hero heroine hero|heroes heroines heroes|warlock witch magic practitioner
wizard witch magic practitioner|monk nun monastic|friar nun monastic|monks nuns monastics
priest priestess priest|bishop bishopess bishop|clergyman clergywoman clergy member
abbot abbess head of the abbey|businessman businesswoman business person|salesman saleswoman salesperson
salesboy salesgirl salesperson|watchman watchwoman watcher|coachman coachwoman coach driver
cabman cabwoman cab driver|charman charwoman chair|washerman washerwoman laundry worker
woodsman woodswoman forester|frenchman frenchwoman french person|policeman policewoman police officer
fireman firewoman firefighter|fisherman fisherwoman fisher|chairman chairwoman chair|workmen workwomen workers
workman workwoman worker|everyman everywoman everyone|servant maid domestic worker
servants maids domestic workers|manservant maidservant domestic worker|butler housekeeper house manager
waiter waitress server|host hostess host|actor actress performer|actors actresses performers
steward stewardess attendant|headmaster headmistress head teacher|schoolmaster schoolmistress teacher
governor governess leader|tutor governess tutor|landlord landlady property owner|suitor suitress suitor
suitors suitresses suitors|hunter huntress hunter|hunters huntresses hunters|lion lioness lion
gay lesbian lgbtq+
"""


def _noun_map() -> dict[str, str]:
    nouns: dict[str, str] = {}
    for entry in re.split(r"[|\n]", _NOUNS.strip()):
        male, female, neutral = entry.split(" ", 2)
        nouns.setdefault(male, neutral)
        nouns.setdefault(female, neutral)
    return nouns


NOUNS: Mapping[str, str] = MappingProxyType(_noun_map())
"""Gendered noun in lower case to its neutral form; pairs as in the released data, with everyday ones added."""

IRREGULAR_VERBS: Mapping[str, str] = MappingProxyType(
    {
        "is": "are",
        "was": "were",
        "has": "have",
        "does": "do",
        "goes": "go",
        "undergoes": "undergo",
        "isn't": "aren't",
        "wasn't": "weren't",
        "hasn't": "haven't",
        "doesn't": "don't",
    }
)
PAPER_VERBS = {"marries": "marry", "approaches": "approach", "identifies": "identify", "accompanies": "accompany"}

BETWEEN = frozenset(
    """
    again almost already also always both briefly certainly clearly deeply either even eventually ever finally
    first gradually happily however immediately instead just later long merely much nearly never next no not
    now often once only perhaps quickly quietly rarely really secretly seldom simply slowly somehow sometimes
    soon still suddenly then there therefore thus together too twice usually very
    """.split()  # noqa: SIM905
)
NOT_VERBS = frozenset(
    """
    across afterwards always anxious as besides conscious courageous curious downwards during else's famous
    furious generous hers his its jealous less nervous nevertheless numerous ours perhaps plus precious
    previous religious serious sometimes theirs this thus towards unless upwards us various whereas yes yours
    """.split()  # noqa: SIM905
)
