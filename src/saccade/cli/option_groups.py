"""Groups of options: a command takes one object for all that belongs together, and the terminal sees single options."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every parameter that is a dataclass replaced by the fields of that dataclass, for typer."""
    hints = get_type_hints(command, include_extras=True)
    flat: list[Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in signature(command).parameters.values():
        kind = hints[parameter.name]
        if not is_dataclass(kind):
            flat.append(parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name], own = kind, get_type_hints(kind, include_extras=True)
        flat += [
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=own[field.name])
            for field in fields(kind)
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    run.__signature__ = Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return run
