"""The floors of pyproject.toml as pip's constraints, one `name==floor` a line: what `make portable` installs."""

import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def floors() -> list[str]:
    """Every `name>=floor` of the dependencies and extras but "peers"; our own extras name each other and have none."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    extras = {name: extra for name, extra in project["optional-dependencies"].items() if name != "peers"}
    wanted = [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
    others = [one for one in wanted if not one.startswith(f"{project['name']}[")]
    loose = [one for one in others if one.count(">=") != 1]
    if loose:
        raise SystemExit(f"pyproject.toml: {loose} must each have a floor, such as numpy>=1.26.0.")
    return sorted({one.replace(">=", "==") for one in others})


if __name__ == "__main__":
    print(*floors(), sep="\n")
