"""Ask: which examples a person should label next, whether the labels are right, and when to stop."""
