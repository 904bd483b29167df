"""Several objects that say where the others are: `SituationModel` and `SituationSearch`.

May import search, priors and boxes.
"""
