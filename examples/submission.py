"""Counterfactuals from a tool that knows only an export's files. Run beside a folder made by `geco-ray export`."""

import csv
import runpy
import sys
from pathlib import Path

import numpy as np

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "export/breast_cancer/paper-2026")
probability = runpy.run_path(str(folder / "forward.py"))["probability"]
header, *requests = csv.reader((folder / "requests.csv").read_text().splitlines())
training = np.array(list(csv.reader((folder / "training.csv").read_text().splitlines()))[1:], float)[:, :-1]
accepted, scale = training[probability(training) >= 0.5], training.std(0)

with Path("nearest.csv").open("w", newline="") as stream:
    writer = csv.writer(stream)
    writer.writerow(["request", *header[2:]])
    for request, _, *values in requests:
        distance = np.abs((accepted - np.array(values, float)) / scale).sum(1)
        writer.writerow([request, *accepted[distance.argmin()]])
Path("nearest.yaml").write_text(
    "format: geco_ray.submission/1\nkind: counterfactuals\nname: nearest_row\ntitle: Nearest row\n"
    "dataset: breast_cancer\nbase_seed: 2026\n"
)
print("nearest.csv: check it with `geco-ray submit nearest.csv`")
