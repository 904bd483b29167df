"""All hits in a huge picture: `TileSearch` over a grid of tiles.

May import sources and boxes.
"""
