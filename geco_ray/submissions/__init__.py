"""Results that were made elsewhere and come back as a file: a card, checked rows, an identity by content."""

from __future__ import annotations

from geco_ray.submissions.attributions import AttributionFile, read_attributions
from geco_ray.submissions.cards import FORMAT, SubmissionCard, content_id, find_submission, read_card
from geco_ray.submissions.counterfactuals import BaseKey, CounterfactualFile, read_counterfactuals
from geco_ray.submissions.options import SubmissionOptions

__all__ = [
    "FORMAT",
    "AttributionFile",
    "BaseKey",
    "CounterfactualFile",
    "SubmissionCard",
    "SubmissionOptions",
    "content_id",
    "find_submission",
    "read_attributions",
    "read_card",
    "read_counterfactuals",
]
