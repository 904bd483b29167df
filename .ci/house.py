"""How large and how straight the source is: `make house` prints it, `make check` refuses what is over a limit.

Without docstrings a file has at most 300 lines and a function at most 50; a function has at most 12 branches and 8
parameters. Compiled loops take plain arrays and constructors plain options, so both may have more parameters. A private
name is used in the file that defines it. No docstring begins with "The same": it says what a thing is, not what it is
like.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "saccade"
LINES, FUNCTION_LINES, BRANCHES, PARAMETERS = 300, 50, 12, 8
PUBLIC_OPTIONS = ("active/asking.py", "localize/windows/best_window.py")  # functions whose keywords are their face
LISTS = ("_core/limits.py",)  # one line per constant, in one place
PUBLIC = ("__", "_replace", "_asdict", "_fields")  # of Python and of named tuples
BRANCHING = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension, ast.Assert)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def docstring_lines(node: ast.AST) -> int:
    """Lines of the docstring of a module, a class or a function; 0 where it has none."""
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return (first.end_lineno or first.lineno) - first.lineno + 1
    return 0


def branches(function: Function) -> int:
    """One more than the places where the way through a function parts."""
    found = 1
    for node in ast.walk(function):
        found += isinstance(node, BRANCHING) + (len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0)
    return found


def parameters(function: Function) -> int:
    """Without `self` and `cls`, and without *args and **kwargs."""
    given = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    return sum(argument.arg not in ("self", "cls") for argument in given)


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def names_defined(tree: ast.Module) -> set[str]:
    """Private names that a file gives a meaning to."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            found.add(node.attr)
    return found


def private_reach(tree: ast.Module) -> Iterator[ast.Attribute]:
    """Uses of private names that belong to other files."""
    own = names_defined(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr.startswith(PUBLIC) or is_self(node.value):
            continue
        if node.attr.startswith("_") and node.attr not in own:
            yield node


def findings(path: Path, count: Counter[str]) -> Iterator[str]:
    """What is over a limit in one file; `count` gets the figures."""
    text = path.read_text()
    tree, lines = ast.parse(text), text.count("\n")
    name = path.relative_to(SOURCE).as_posix()
    documented = sum(docstring_lines(n) for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | Function))
    count["files"] += 1
    count["lines"] += lines
    count["lines of docstrings"] += documented
    count["uses of Any"] += sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))
    count["isinstance"] += sum(isinstance(node, ast.Name) and node.id == "isinstance" for node in ast.walk(tree))
    if lines - documented > LINES and name not in LISTS:
        yield f"{name}: {lines - documented} lines without docstrings, at most {LINES}"
    for reach in private_reach(tree):
        count["private names of other files"] += 1
        yield f"{name}:{reach.lineno} {ast.unparse(reach)} is private to another file"
    for node in ast.walk(tree):
        documents = isinstance(node, ast.Module | ast.ClassDef | Function)
        if documents and (ast.get_docstring(node) or "").startswith("The same"):
            yield f'{name}:{getattr(node, "lineno", 1)} a docstring begins with "The same"'
    compiled = path.stem.endswith("loops") or "simd" in path.stem
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        long = (function.end_lineno or 0) - function.lineno + 1 - docstring_lines(function)
        where = f"{name}:{function.lineno} {function.name}"
        if long > FUNCTION_LINES:
            yield f"{where}: {long} lines, at most {FUNCTION_LINES}"
        if branches(function) > BRANCHES and not compiled:
            yield f"{where}: {branches(function)} branches, at most {BRANCHES}"
        if (
            parameters(function) > PARAMETERS
            and not compiled
            and function.name != "__init__"
            and name not in PUBLIC_OPTIONS
        ):
            yield f"{where}: {parameters(function)} parameters, at most {PARAMETERS}"


def main() -> int:
    count = Counter[str]()
    found = [finding for path in sorted(SOURCE.rglob("*.py")) for finding in findings(path, count)]
    print(*found, sep="\n", end="\n" if found else "")
    print(", ".join(f"{number:,} {what}" for what, number in count.items()), f"{len(found)} over a limit", sep="; ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
