"""The best window of a bag-of-words model by branch and bound: `best_window`.

May import boxes.
"""
