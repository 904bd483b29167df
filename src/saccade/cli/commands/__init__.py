"""One module per command. May import all else in cli; nothing in cli but its `__init__` imports a command."""
