"""Tables in and out: examples, labels, questions and boxes from files, and results to files.

May import console and terminal; no command, no report.
"""
