"""How long it takes to read a labelling and to build its six variants, masks and tasks.

    python benchmarks/geco_data.py LABELLING [--runs N]

``LABELLING`` is GECO's labelling JSON or a labelling of our own; without it the demo corpus is built. Prints the median
seconds of N runs in one process, and how often the demo's four tasks could be built in the same time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from geco_ray.geco.corpus.builder import build_all, build_variants, truth_mask
from geco_ray.geco.corpus.convert import convert_geco
from geco_ray.geco.corpus.demo import demo_labelling
from geco_ray.geco.corpus.labelling import VERSIONS, Labelling, load_labelling
from geco_ray.geco.corpus.neutral import NeutralRules

RULES = NeutralRules(style="paper", unknown="keep")


def read(path: Path | None) -> Labelling:
    if path is None:
        demo_labelling.cache_clear()
        return demo_labelling()
    return convert_geco(path) if path.suffix == ".json" else load_labelling(path)


def six_variants(labelling: Labelling) -> None:
    for sentence in labelling.sentences:
        for version in VERSIONS:
            variants = build_variants(sentence, version, labelling.classes, rules=RULES)
            truth_mask(variants[:2])
            truth_mask(variants)


def seconds(runs: int, work: Callable[[], object]) -> float:
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labelling", type=Path, nargs="?", default=None)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    labelling, demo = read(given.labelling), demo_labelling()
    print(f"{len(labelling.sentences)} source sentences, {given.runs} runs, medians")
    print(f"read the labelling          {seconds(given.runs, lambda: read(given.labelling)):.3f} s")
    variants = seconds(given.runs, lambda: six_variants(labelling))
    print(f"six variants and four masks {variants:.3f} s")
    print(f"all tasks, with fingerprint {seconds(given.runs, lambda: build_all(labelling, rules=RULES)):.3f} s")
    print(f"variants in units of the demo's tasks {variants / seconds(given.runs, lambda: build_all(demo)):.1f}")


if __name__ == "__main__":
    main()
