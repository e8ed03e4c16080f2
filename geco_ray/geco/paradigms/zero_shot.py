"""What the paradigms without training share: options, and a record of how good the classifier is as it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from geco_ray.geco.paradigms.base import PARADIGMS, Paradigm, TrainingSetup
from geco_ray.registry import Options

if TYPE_CHECKING:
    from geco_ray.geco.classifiers import Classifier
    from geco_ray.geco.tokens import IntArray, TokenRow
    from geco_ray.geco.trained import FloatArray, PredictedRows, TrainedClassifier


def _pairs(given: Any) -> Any:
    """A mapping as sorted pairs, which are the same in every order and can be hashed."""
    if isinstance(given, dict):
        return tuple(sorted((key, value) for key, value in given.items()))
    return tuple(map(tuple, given)) if isinstance(given, list) else given


LabelWords = Annotated[tuple[tuple[str, str], ...], BeforeValidator(_pairs)]


class LabelWordOptions(Options):
    """``label_words``: class to word; null is female, male and neutral for classes of these names."""

    label_words: LabelWords | None = None


class ZeroShot(Paradigm):
    """A classifier that nothing is drawn for: one run stands for all seeds."""

    depends_on: ClassVar[Literal["encoder", "tokenizer"]] = "encoder"
    repeated: ClassVar[bool] = False
    is_reference: ClassVar[bool] = True
    trained = ()
    redrawn = ()

    def classifier(self, setup: TrainingSetup, options: Options) -> Classifier:
        """The classifier, on the CPU."""
        raise NotImplementedError

    def train(self, setup: TrainingSetup, options: Options, seeds: Sequence[int | None]) -> Iterator[TrainedClassifier]:
        from geco_ray.geco.fitting import EpochRecord
        from geco_ray.geco.trained import Accuracies, PredictedRows, TrainedClassifier
        from geco_ray.geco.training import validation_split

        self.check(setup, options)
        module = self.classifier(setup, options).to(setup.device).eval().requires_grad_(False)
        tokens, task = setup.tokens.laid_out(module.layout), setup.tokens.task
        trained_on = PredictedRows(task.train, *_predict(module, tokens.train, setup))
        tested = PredictedRows(task.test, *_predict(module, tokens.test, setup))
        train, test = _right(trained_on), _right(tested)
        inside, held_out = validation_split(task.train, setup.protocol)
        found = Accuracies(*(_mean(part) for part in (train[inside], train[held_out], test)))
        name = next(entry.name for entry in PARADIGMS.entries() if entry.target is type(self))
        for seed in seeds:
            yield TrainedClassifier(
                dataset=task.name,
                task_fingerprint=task.fingerprint,
                paradigm=name,
                options=options,
                protocol=setup.protocol.name,
                seed=seed,
                depends_on=self.fingerprint(setup.source),
                labels=task.labels,
                best_epoch=0,
                history=(EpochRecord(0, None, None, found.validation),),
                accuracies=found,
                module=module,
                test_rows=tested,
            )


def _mean(part: IntArray) -> float:
    return float(part.mean()) if len(part) else float("nan")


def _right(found: PredictedRows) -> IntArray:
    """Which rows are classified right, 0 or 1 each."""
    import numpy as np

    right: IntArray = np.equal(found.predicted, [row.target for row in found.rows]).astype(np.int64)
    return right


def _predict(module: Classifier, rows: Sequence[TokenRow], setup: TrainingSetup) -> tuple[IntArray, FloatArray | None]:
    """Predicted classes, and the probability of each where logits decide, in batches of one length."""
    import numpy as np
    import torch

    from geco_ray.geco.tokens import equal_length_batches

    predicted = np.zeros(len(rows), np.int64)
    probabilities = np.zeros((len(rows), len(setup.tokens.task.labels)))
    with torch.no_grad():
        for batch in equal_length_batches([len(row) for row in rows], 8192):
            ids = torch.stack([torch.from_numpy(rows[index].ids) for index in batch]).to(setup.device)
            if not module.decides_by_logits:
                predicted[batch] = module.predict(ids, None).cpu().numpy()
                continue
            logits = module(ids, None)
            predicted[batch] = logits.argmax(1).cpu().numpy()
            probabilities[batch] = module.probabilities(logits).cpu().numpy()
    return predicted, probabilities if module.decides_by_logits else None
