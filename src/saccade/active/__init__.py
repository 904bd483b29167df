"""Ask: which examples a person should label next, whether the labels are right, and when to stop."""

from typing import TYPE_CHECKING

from saccade._core.lazy import lazy_names

if TYPE_CHECKING:
    from saccade.active.asking import query
    from saccade.active.learner import ActiveLearner
    from saccade.active.wrong_labels import LabelIssues, label_issues

__all__ = ["ActiveLearner", "LabelIssues", "label_issues", "query"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {"ActiveLearner": "learner", "LabelIssues": "wrong_labels", "label_issues": "wrong_labels", "query": "asking"},
)
