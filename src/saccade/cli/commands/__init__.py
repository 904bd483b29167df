"""One module per command of `saccade`.

May import everything else in cli; nothing in cli but its `__init__` imports a command.
"""
