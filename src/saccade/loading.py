"""`saccade.load`: the model in a file, with the transformers of pictures in front of it where it has some."""

from collections.abc import Callable
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from saccade.estimators import model_file

KEY = "finder"  # in the header of a file: what a Finder has beside its judge


def _asked(name: str) -> Any:
    """A method of the estimator for rows of vectors, as a method of the pipeline for pictures."""

    def has(pipeline: Pipeline) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(pipeline[-1], name)  # an AttributeError names the estimator
        return found

    def answer(pipeline: Pipeline, X: Any, *args: Any, **options: Any) -> Any:
        return has(pipeline)(pipeline[:-1].transform(X), *args, **options)

    answer.__name__ = name
    answer.__doc__ = f"`{name}` of the estimator, for pictures."
    return available_if(has)(answer)


class PictureModel(Pipeline):  # type: ignore[misc]  # scikit-learn has no types
    """Transformers of pictures and an estimator: a Pipeline that answers all that the estimator answers."""

    novelty = _asked("novelty")
    latent_mean_and_variance = _asked("latent_mean_and_variance")
    explain = _asked("explain")
    sample_latent = _asked("sample_latent")
    sample_y = _asked("sample_y")


def load(path: Any) -> Any:
    """Load what `model.save` wrote: it predicts, and cannot be trained further.

    A model that was saved alone is the estimator. One that was saved with `features=` is a scikit-learn Pipeline of
    those transformers and the estimator: it takes pictures, as `read_pictures` gives them or a list of paths or arrays,
    and answers what the estimator answers, such as `novelty` and `explain`. `pipeline[-1]` is the estimator, which
    takes vectors, and `pipeline[:-1]` makes them. What a `Finder` saved is a `Finder` again.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    GPClassifier, GPRegressor, OneClassGP, SVDD, Pipeline or Finder
        As it was saved; it is fitted again where the file keeps the training rows.

    Raises
    ------
    ModelFileError
        If the file is damaged, or no model.
    """
    model, header = model_file.load_with_header(path)
    if not header.get("pictures"):
        return model
    from saccade.features.serialize import load_features

    if KEY in header:
        from saccade.localize.finder.file import finder_of

        return finder_of(header[KEY], model, load_features(path), path)
    return PictureModel([*load_features(path).steps, (type(model).__name__.lower(), model)])
