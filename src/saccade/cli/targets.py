"""Files that a command will write, checked before the work begins."""

import tempfile
from pathlib import Path

from saccade._core.errors import InvalidInput


def check_targets(
    targets: dict[str, Path | str | None],  # by option; None and "-" are no files
    force: bool,
    sources: tuple[Path, ...],  # files that are read, which no option may overwrite
) -> None:
    """Raise InvalidInput for a file that must not or cannot be written, or that two options name."""
    seen: dict[Path, str] = {}
    for option, target in targets.items():
        if target is None or target == "-":
            continue
        path = Path(target)
        _check(path, force, sources)
        other = seen.setdefault(path.resolve(), option)
        if other != option:
            raise InvalidInput(f"{other} and {option} are both {path}. Give them different names.")


def _check(path: Path, force: bool, sources: tuple[Path, ...]) -> None:
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder {path.parent} for {path.name}. Make it first.")
    if path.exists():
        if any(source.exists() and path.samefile(source) for source in sources):
            raise InvalidInput(f"This command reads {path}, so it cannot write it too. Choose another name.")
        if not force:
            raise InvalidInput(f"{path} exists already. Add --force to overwrite it, or choose another name.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InvalidInput(f"Cannot write in the folder {path.parent}: {error.strerror}. Choose another one.") from None
