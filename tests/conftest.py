"""Settings that every test shares."""

from hypothesis import settings

# A stopwatch never decides a test: the first example of a compiled loop pays for its compilation.
settings.register_profile("saccade", deadline=None, print_blob=True)
settings.load_profile("saccade")
