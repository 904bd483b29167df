"""`saccade.load`: the model in a file, with the transformers of pictures in front of it where it has some."""

from typing import Any

from saccade.estimators import model_file


def load(path: Any) -> Any:
    """What `model.save` wrote to `path`: it predicts, and cannot be trained further.

    A model that was saved alone is the estimator. One that was saved with `features=` is a scikit-learn Pipeline of
    those transformers and the estimator: it takes pictures, as `read_pictures` gives them or a list of paths or arrays.
    `pipeline[-1]` is the estimator, which takes vectors, and `pipeline[:-1]` makes them.
    """
    model, header = model_file.load_with_header(path)
    if not header.get("pictures"):
        return model
    from sklearn.pipeline import Pipeline

    from saccade.features.serialize import load_features

    return Pipeline([*load_features(path).steps, (type(model).__name__.lower(), model)])
