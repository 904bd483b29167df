"""Pictures too large to hold, read box by box: arrays, files, TIFF and zarr pyramids, slides.

May import boxes.
"""
