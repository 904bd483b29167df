"""One object in few looks: `Localizer`, what it believes, and where it looks next.

May import priors, sources and boxes.
"""
