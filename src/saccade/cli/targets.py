"""Files that a command will write, checked before the work begins."""

from pathlib import Path

from saccade._core.errors import InvalidInput


def check_targets(
    targets: dict[str, Path],  # by option
    force: bool,
    sources: tuple[Path, ...],
) -> None:
    """`check_target` of each; no two may be the same file."""
    for path in targets.values():
        check_target(path, force, sources)
    seen: dict[Path, str] = {}
    for option, path in targets.items():
        other = seen.setdefault(path.resolve(), option)
        if other != option:
            raise InvalidInput(f"{other} and {option} are both {path}. Give them different names.")


def check_target(
    path: Path,
    force: bool,
    sources: tuple[Path, ...],  # files that are read, which no option may overwrite
) -> None:
    """Raise InvalidInput for a file that must not or cannot be written: before the work begins."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder {path.parent} for {path.name}. Make it first.")
    if path.exists():
        if any(source.exists() and path.samefile(source) for source in sources):
            raise InvalidInput(f"{path} is read by this command and cannot be its output too. Choose another name.")
        if not force:
            raise InvalidInput(f"{path} is there already. Add --force to overwrite it, or choose another name.")
    _check_writable(path.parent)


def _check_writable(folder: Path) -> None:
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInput(f"Cannot write in the folder {folder}: {error.strerror}. Choose another one.") from None
