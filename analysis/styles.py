"""How things are called, ordered and coloured in every table and figure.

The order is the papers' (GECOBench, figure 2; "Robust to Which Model Change?", figure 1). A name that is not listed
here, such as a third party's method, is shown as it is, after the listed ones; its colour depends on its name alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from geco_ray.errors import simplify


@dataclass(frozen=True, slots=True)
class Look:
    """What a name looks like: its display title, its place in the order, its colour and marker."""

    title: str
    rank: int
    colour: str
    marker: str
    hollow: bool = False


# Okabe and Ito's colours, which stay apart under the common forms of colour blindness; greys mark baselines.
_SPARE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_SPARE_MARKERS = ("P", "X", "h", "*", "p", "8")
_VARIANT_MARKERS = ("D", "^", "X", "v", "P", "o", "s")

_DATASETS = {
    "binary_gender_all": "Binary, all persons (D_A)",
    "binary_gender_subj": "Binary, subject only (D_S)",
    "non_binary_gender_all": "Non-binary, all persons (D_A)",
    "non_binary_gender_subj": "Non-binary, subject only (D_S)",
    "demo_binary_all": "Demo: binary, all persons (D_A)",
    "demo_binary_subj": "Demo: binary, subject only (D_S)",
    "demo_non_binary_all": "Demo: non-binary, all persons (D_A)",
    "demo_non_binary_subj": "Demo: non-binary, subject only (D_S)",
    "breast_cancer": "Breast Cancer",
    "diabetes": "Diabetes",
    "wine_quality": "Wine Quality",
    "heloc": "HELOC",
}
_PARADIGMS = {
    "BERT-ZS": ("#595959", "P", True),
    "BERT-C": ("#0072B2", "o", False),
    "BERT-CEf": ("#E69F00", "s", False),
    "BERT-CE": ("#009E73", "^", False),
    "BERT-CEfAf": ("#CC79A7", "D", False),
    "OLA-CEA": ("#D55E00", "v", False),
}
_ATTRIBUTIONS = {
    "uniform_random": "Uniform random",
    "saliency": "Saliency",
    "kernel_shap": "Kernel SHAP",
    "guided_backprop": "Guided Backprop",
    "deeplift": "DeepLift",
    "input_x_gradient": "InputXGradient",
    "lime": "LIME",
    "gradient_shap": "Gradient SHAP",
    "integrated_gradients": "Integrated Gradients",
    "pattern_variant": "Pattern Variant",
}
_COUNTERFACTUALS = {
    "wachter": ("Wachter", "#333333", "o", True),
    "apas": ("APΔS", "#0072B2", "s", False),
    "rbr": ("RBR", "#E69F00", "^", False),
    "kdtree": ("KD-tree", "#8C8C8C", "s", True),
    "rnce": ("RNCE", "#009E73", "D", False),
    "betarce": ("BetaRCE", "#56B4E9", "v", False),
    "roar_lime": ("ROAR-LIME", "#CC79A7", "P", False),
    "robx_balanced": ("RobX balanced", "#D55E00", "X", False),
    "robx_robust": ("RobX robust-first", "#7F2704", "*", False),
}
_FAMILIES = {
    "architecture": "Architecture",
    "bootstrap": "Bootstrap",
    "seed": "New seed",
    "training_config": "Training config",
    "label_update": "Label update",
    "deletion": "Deletion",
    "data_addition": "Data addition",
    "bounded_parameter": "Parameter perturb.",
}


def _plain(titles: dict[str, str]) -> dict[str, Look]:
    return {simplify(name): Look(title, rank, "#333333", "o") for rank, (name, title) in enumerate(titles.items())}


_KNOWN: dict[str, dict[str, Look]] = {
    "dataset": _plain(_DATASETS),
    "attribution": _plain(_ATTRIBUTIONS),
    "family": _plain(_FAMILIES),
    "paradigm": {simplify(name): Look(name, rank, *look) for rank, (name, look) in enumerate(_PARADIGMS.items())},
    "counterfactual": {
        simplify(name): Look(title, rank, colour, marker, hollow)
        for rank, (name, (title, colour, marker, hollow)) in enumerate(_COUNTERFACTUALS.items())
    },
}


def look(kind: str, name: str) -> Look:
    """The look of ``name``; ``kind`` is dataset, paradigm, attribution, counterfactual or family."""
    known = _KNOWN[kind].get(simplify(name))
    if known is not None:
        return known
    number = zlib.crc32(simplify(name).encode())
    colour, marker = _SPARE[number % len(_SPARE)], _SPARE_MARKERS[number // 7 % len(_SPARE_MARKERS)]
    return Look(name, len(_KNOWN[kind]), colour, marker, hollow=True)


def variants(kind: str, labels: Iterable[tuple[str, str]]) -> dict[str, Look]:
    """Label to look for pairs of (name, label): the labels of one name get shades and markers of their own.

    The first label of a name keeps its look, so that nothing changes where a name has one setting only.
    """
    found: dict[str, Look] = {}
    count: dict[str, int] = {}
    for name, label in labels:
        if label not in found:
            place = count[name] = count.get(name, -1) + 1
            found[label] = _shade(look(kind, name), place)
    return found


def _shade(own: Look, place: int) -> Look:
    """The ``place``-th variant of a look: darker and lighter in turn, with another marker."""
    if place == 0:
        return own
    target, part = (0, 0.45) if place % 2 else (255, 0.5)
    channels = (int(own.colour[at : at + 2], 16) for at in (1, 3, 5))
    colour = "#" + "".join(f"{round(channel + part * (target - channel)):02X}" for channel in channels)
    others = [marker for marker in _VARIANT_MARKERS if marker != own.marker]
    return replace(own, colour=colour, marker=others[(place - 1) % len(others)])


def title(kind: str, name: str) -> str:
    """The display title of ``name``."""
    return look(kind, name).title


def in_order(kind: str, names: Iterable[str]) -> list[str]:
    """The distinct ``names`` in the papers' order; unknown ones last, by alphabet."""
    return sorted(set(names), key=lambda name: (look(kind, name).rank, name))
