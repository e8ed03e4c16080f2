"""Attributions of one's own against the truth of the demo corpus: scores of words, then of pieces."""

import numpy as np

import geco_ray
from geco_ray.geco import load_task

task = load_task("demo_binary_all")

# One score per word: here the length of the word, which knows nothing.
lengths = [[len(word) for word in row.words] for row in task.test]
print(geco_ray.score_attributions(task, lengths))

# Signed scores of pieces, with the word of each and -1 for special tokens: here two pieces a word, and the truth.
words = [np.r_[-1, np.repeat(np.arange(len(row.words)), 2), -1] for row in task.test]
pieces = [np.r_[0.0, np.repeat(row.truth, 2) * -0.5, 0.0] for row in task.test]
print(geco_ray.score_attributions(task, pieces, words=words))
