"""Pages that commands write, with their templates. May import tables and the modules beside it; no command."""
