"""Attributions of one's own, held to the truth of a task: no model, no torch, no grid."""

from __future__ import annotations

from geco_ray.geco.own_scores.scores import AttributionScores, score_attributions

__all__ = ["AttributionScores", "score_attributions"]
