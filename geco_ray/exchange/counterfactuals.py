"""A base model for others: its requests and data in the table's units, the network, and how it is computed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geco_ray.cfe.factuals import select_factuals
from geco_ray.exchange.files import tidy, write_csv, write_json
from geco_ray.files.atomic import write_whole

if TYPE_CHECKING:
    from geco_ray.cfe.base_model import BaseModel
    from geco_ray.cfe.data.datasets import Dataset, Part
    from geco_ray.cfe.mlp import Mlp

SCHEMA = "geco_ray.export.counterfactuals/1"

FORWARD = '''"""The network of this folder in NumPy: probability(x) for rows x (n, d) in the units of the table."""
import json, pathlib
import numpy as np
from safetensors.numpy import load_file
here = pathlib.Path(__file__).parent
card, net = json.loads((here / "card.json").read_text()), load_file(here / "model.safetensors")
mean, scale = (np.array([f[key] for f in card["features"]]) for key in ("mean", "scale"))
def probability(x):
    h = ((np.asarray(x, float) - mean) / scale).astype(np.float32)
    for layer in range(len(net) // 2):
        h = (np.maximum(h, 0) if layer else h) @ net[f"{layer}.weight"].T + net[f"{layer}.bias"]
    return 1 / (1 + np.exp(-h[:, 0]))
'''


def export_base_model(base: BaseModel, dataset: Dataset, folder: Path) -> list[str]:
    """Write one base model's folder; the names of its files.

    ``card.json``: schema, key, features (name, unit, mean, scale, smallest and largest training value, constraints).
    ``requests.csv``: request id, row of the table, values. ``training.csv``, ``validation.csv``: values and label, 1
    favourable. ``model.safetensors``, ``forward.py``; ``model.onnx`` where the package onnx is installed.

    Args:
        base: the model. dataset: its data. folder: where to; created.
    """
    folder.mkdir(parents=True, exist_ok=True)
    factuals = select_factuals(base, dataset.test)
    write_json(folder / "card.json", _card(base, dataset, len(factuals), factuals.eligible))
    rows = zip(factuals.ids.tolist(), factuals.row_ids.tolist(), tidy(dataset.in_units(factuals.x)), strict=True)
    write_csv(
        folder / "requests.csv", ["request", "row", *dataset.features], ([i, row, *values] for i, row, values in rows)
    )
    for name, part in (("training", dataset.train), ("validation", dataset.val)):
        _write_part(folder / f"{name}.csv", dataset, part)
    write_whole(folder / "model.safetensors", base.model.to_bytes())
    write_whole(folder / "forward.py", FORWARD.encode())
    if find_spec("onnx") is not None:
        write_whole(folder / "model.onnx", onnx_bytes(base.model, dataset))
    return sorted(path.name for path in folder.iterdir())


def _write_part(path: Path, dataset: Dataset, part: Part) -> None:
    rows = zip(tidy(dataset.in_units(part.x)), part.y.tolist(), strict=True)
    write_csv(path, [*dataset.features, "favourable"], ([*values, label] for values, label in rows))


def _card(base: BaseModel, dataset: Dataset, requests: int, eligible: int) -> dict[str, Any]:
    said = dataset.card.model_dump(mode="json")
    raw = dataset.in_units(dataset.train.x)
    units, ranges = said.get("units") or {}, said.get("ranges") or {}
    features = [
        {
            "name": name,
            "unit": units.get(name, ""),
            "mean": float(dataset.mean[i]),
            "scale": float(dataset.scale[i]),
            "smallest": float(f"{raw[:, i].min():.12g}"),
            "largest": float(f"{raw[:, i].max():.12g}"),
            "integer": name in said["integers"],
            "immutable": name in said["immutable"],
            "range": ranges.get(name),
        }
        for i, name in enumerate(dataset.features)
    ]
    return {
        "schema": SCHEMA, "dataset": dataset.name, "title": dataset.card.title, "data": dataset.fingerprint,
        "base_seed": base.key.seed, "seeding": base.key.seeding, "model": base.model.digest(),
        "hidden": list(base.model.hidden), "favourable": "probability >= 0.5", "requests": requests,
        "eligible_rows": eligible, "features": features,
    }  # fmt: skip


def onnx_bytes(model: Mlp, dataset: Dataset) -> bytes:
    """The network as ONNX: ``x`` (n, d) float32 in the table's units to ``probability`` (n, 1)."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    arrays = {"mean": dataset.mean.astype(np.float32), "scale": dataset.scale.astype(np.float32)}
    nodes = [helper.make_node("Sub", ["x", "mean"], ["centred"]), helper.make_node("Div", ["centred", "scale"], ["h0"])]
    last = len(model.weights) - 1
    for layer, (weight, bias) in enumerate(zip(model.weights, model.biases, strict=True)):
        arrays |= {f"w{layer}": weight, f"b{layer}": bias}
        nodes.append(helper.make_node("Gemm", [f"h{layer}", f"w{layer}", f"b{layer}"], [f"z{layer}"], transB=1))
        kind, out = ("Sigmoid", "probability") if layer == last else ("Relu", f"h{layer + 1}")
        nodes.append(helper.make_node(kind, [f"z{layer}"], [out]))
    graph = helper.make_graph(
        nodes,
        "base_model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", model.inputs])],
        [helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["n", 1])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())
