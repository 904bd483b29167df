"""Text on a terminal or pipe whose encoding lacks a character: spelled out, never a traceback."""

import codecs
from typing import Annotated, Any

SPELLED = {
    **{"–": "-", "−": "-", "×": "x", "²": "2", "±": "+-", "→": "->", "←": "<-", "…": "...", "“": '"', "”": '"'},
    **{"µ": "u", "σ": "sigma", "α": "alpha", "Δ": "Delta", "≥": ">=", "≤": "<="},
}
SPELL_OUT = "saccade.spell_out"  # the name under which Python's encoders know it


def _spell_out(error: UnicodeError) -> tuple[bytes, int]:
    """What stands for the characters that the encoding lacks; bytes of file names (surrogates) stay bytes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return b"".join(map(_spelled, error.object[error.start : error.end])), error.end


def _spelled(character: str) -> bytes:
    is_byte = "\udc80" <= character <= "\udcff"
    return SPELLED.get(character, character).encode("ascii", "surrogateescape" if is_byte else "backslashreplace")


codecs.register_error(SPELL_OUT, _spell_out)


def spell_out(stream: Annotated[Any, "a text stream"]) -> Any:
    """Make a stream spell out what its encoding lacks; returns the stream."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=SPELL_OUT)
    return stream
