"""Settings that every test shares."""

import os

from hypothesis import settings

# A stopwatch never decides a test: the first example of a compiled loop pays for its compilation.
# At the desk every run draws new examples. CI draws the same ones each time, so that it judges the change and not the
# draw; what the desk finds is mended there.
settings.register_profile("saccade", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("saccade")
