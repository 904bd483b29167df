"""Tables in and out: examples, labels, questions, boxes. May import console and terminal; no command, no report."""
