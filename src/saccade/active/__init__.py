"""Ask: which examples a person should label next, whether the labels are right, and when to stop."""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.active.asking import query
    from saccade.active.learner import ActiveLearner

__all__ = ["ActiveLearner", "query"]

__getattr__, __dir__ = lazy_names(__name__, {"ActiveLearner": "learner", "query": "asking"})
