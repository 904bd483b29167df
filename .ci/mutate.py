"""Small faults put into the source one at a time, to see whether a test fails: `make mutate`, no part of CI.

    make mutate ARGS="active --count 50 --seed 1"

A fault that no test notices is a survivor: its line needs a test, or has no effect and can go. Everything happens in a
copy of the checkout. The tests of a room run once there, while the lines that each test reaches are noted. Then every
fault gets a process of its own, a fork of the one whose tests are loaded and whose loops are compiled, and there the
tests that reach its line run: first the quickest, then the others, up to the first that fails. What runs at import is
judged in a fresh process instead. The seed decides which faults are drawn.
"""

import argparse
import ast
import functools
import gc
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ["active", "estimators", "inference", "localize"]
PYTEST = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
QUICKEST = 15  # tests that run before the others that reach the line
PATIENCE = 5  # a mutation is endless after `grace` seconds and this many times what its tests take without it
ENDLESS, UNREACHED = "endless", "no test reaches it"
LEFT_BEHIND = (".git", ".venv*", ".*_cache", ".hypothesis", "demo", "build", "dist")  # not copied
WORDS = {"min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all", "True": "False"}
SIGNS = {"<": ["<=", ">"], ">": [">=", "<"], "<=": ["<"], ">=": [">"], "==": ["!="], "!=": ["=="], "is": ["is not"]}
SIGNS |= {"is not": ["is"], "in": ["not in"], "not in": ["in"], "and": ["or"], "or": ["and"]}
SIGNS |= {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "**": ["*"], "//": ["*"]}
SIGN = re.compile(rb"#[^\n]*|\bis\s+not\b|\bnot\s+in\b|\b(?:is|in|and|or)\b|\*\*|//|[<>=!]=|[-+*/<>]")
SPARED_CALLS = {"isinstance", "issubclass", "cast", "TypeVar", "warn"}
SPARED_KEYWORDS = {"strict", "stacklevel"}  # of zip and warn


@dataclass(frozen=True)
class Mutation:
    """A piece of one file's bytes, and what stands there instead."""

    path: str  # from the root of the checkout
    line: int
    begin: int
    end: int
    old: str
    new: str
    first: int  # tests that reach one of these lines can notice it
    last: int
    at_import: bool  # the line runs when its module is imported

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old} → {self.new or 'nothing'}"

    def applied(self, source: bytes) -> bytes:
        return source[: self.begin] + self.new.encode() + source[self.end :]


class Finder(ast.NodeVisitor):
    """All mutations of one file. Annotations, messages, f-strings, type checks and compiled loops have none."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source, self.found = path, source, list[Mutation]()
        self._starts = [0, *(at.end() for at in re.finditer(rb"\n", source))]  # where each line begins
        self._at_import, self._reach = True, (1, len(self._starts))
        self.visit(ast.parse(source))

    def _span(self, node: Any) -> tuple[int, int]:  # ast counts columns in bytes
        first, last = self._starts[node.lineno - 1], self._starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    def _add(self, begin: int, end: int, new: str) -> None:
        line = self.source.count(b"\n", 0, begin) + 1
        old = self.source[begin:end].decode()
        first, last = self._reach if self._at_import else (line, line)
        self.found.append(Mutation(self.path, line, begin, end, old, new, first, last, self._at_import))

    def _sign(self, left: ast.AST, right: ast.AST) -> None:
        begin, end = self._span(left)[1], self._span(right)[0]
        for sign in SIGN.finditer(self.source, begin, end):
            for new in SIGNS.get(" ".join(sign.group().decode().split()), []):
                self._add(*sign.span(), new)

    def _word(self, begin: int, word: str) -> None:
        for old, new in [*WORDS.items(), *((new, old) for old, new in WORDS.items())]:
            if word == old:
                self._add(begin, begin + len(word), new)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if any("compiled" in ast.unparse(decorator) for decorator in node.decorator_list):
            return
        outside, self._reach = (self._at_import, self._reach), (node.body[0].lineno, node.body[-1].end_lineno or 0)
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(default)
        self._at_import = False
        for statement in node.body:
            self.visit(statement)
        self._at_import, self._reach = outside

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:  # `frozen=True` of a decorator guards against us, not users
            self.visit(statement)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Messages are no behaviour."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Before Python 3.12 nothing says where the parts of an f-string stand."""

    def visit_Call(self, node: ast.Call) -> None:
        if ast.unparse(node.func).split(".")[-1] not in SPARED_CALLS:
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in SPARED_KEYWORDS:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self._word(self._span(node)[0], node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)
        self._word(self._span(node)[1] - len(node.attr.encode()), node.attr)

    def visit_Constant(self, node: ast.Constant) -> None:
        begin, end = self._span(node)
        if isinstance(node.value, bool):
            self._word(begin, str(node.value))
        elif isinstance(node.value, int | float):
            self._add(begin, end, "0" if node.value == 1 else repr(node.value + 1))

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            self._sign(left, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._sign(left, right)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = (ast.JoinedStr, ast.Constant)
        if not any(isinstance(s, text) and not _number(s) for s in (node.left, node.right)):
            self._sign(node.left, node.right)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._sign(node.target, node.value)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        begin = self._span(node)[0]
        if isinstance(node.op, ast.Not):
            self._add(begin, begin + 3, "")
        elif isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            self._add(begin, begin + 1, "")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break) and _one_line(node.test):
            self._add(*self._span(node.test), "False")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and _one_line(node.value) and not _nothing(node.value):
            self._add(*self._span(node.value), "None")
        self.generic_visit(node)


def _number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _nothing(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _one_line(node: Any) -> bool:  # so that all later lines keep their numbers
    return bool(node.lineno == node.end_lineno)


def draw(root: Path, room: str, wish: argparse.Namespace) -> list[Mutation]:
    """`count` mutations of one room, each of another line; every line is as likely as any other."""
    lines = defaultdict(list)
    for path in sorted(root.glob(f"src/*/{room}/**/*.py")):
        for one in Finder(str(path.relative_to(root)), path.read_bytes()).found:
            lines[one.path, one.line].append(one)
    if wish.line:
        wanted = tuple(f"/{line}" for line in wish.line)
        return [one for (path, line), its in lines.items() if f"{path}:{line}".endswith(wanted) for one in its]
    rng = random.Random(f"{wish.seed} {room}")
    chosen = rng.sample(sorted(lines), min(wish.count, len(lines)))
    return [rng.choice(lines[line]) for line in chosen]


class Recorder:
    """The lines of one folder that run, each with the tests that run it; "" stands for import and collection."""

    def __init__(self, folder: str) -> None:
        self.folder, self.tests = folder, defaultdict[tuple[str, int], set[str]](set)
        self.start("")

    def start(self, test: str) -> None:
        """Note the lines that run from now on for this test. A RecursionError in the one before ended the tracing."""
        self.test = test
        threading.settrace(self._called)
        sys.settrace(self._called)

    def stop(self) -> None:
        threading.settrace(None)  # type: ignore[arg-type]
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, value: object) -> Any:
        return self._ran if frame.f_code.co_filename.startswith(self.folder) else None

    def _ran(self, frame: FrameType, event: str, value: object) -> Any:
        self.tests[frame.f_code.co_filename, frame.f_lineno].add(self.test)
        return self._ran


class Judge:
    """Pytest plugin: runs the collected tests once with the recorder, then those that reach it for each mutation."""

    def __init__(self, folder: str, mutations: list[dict[str, Any]], grace: float, reports: int) -> None:
        self.mutations, self.grace, self.reports = [Mutation(**one) for one in mutations], grace, reports
        self.recorder, self.seconds = Recorder(folder), Counter[str]()
        self.failed, self.trusted = set[str](), set[str]()  # tests; trusted ones pass when they run again

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._run(session.items)
        self.recorder.stop()
        if not self.recorder.tests:
            raise pytest.UsageError("no test reaches the room: is another checkout imported?")
        self._report("tests", len(session.items) - len(self.failed), sorted(self.failed))
        for one in self.mutations:
            items = [item for item in session.items if item.nodeid not in self.failed]
            answer = self._judged(one, items)
            while answer in self.seconds and self._fails_again(answer, items):
                items = [item for item in items if item.nodeid not in self.failed]
                answer = self._judged(one, items)
            verdict = "endless" if answer == ENDLESS else "killed" if answer not in ("", UNREACHED) else "survived"
            self._report(verdict, answer)
        return True

    def _report(self, *what: Any) -> None:
        os.write(self.reports, json.dumps(what).encode() + b"\n")

    def _run(self, items: list[pytest.Item], limited: bool = False) -> None:
        """Run tests as pytest does; with limits up to the first that fails or does not end."""
        for item, after in zip(items, [*items[1:], None], strict=True):
            if limited:  # by its own CPU time, which a busy machine does not stretch; by the clock if it only waits
                signal.setitimer(signal.ITIMER_PROF, self._limit([item]))
                signal.alarm(int(10 * self._limit([item])))
            else:
                self.recorder.start(item.nodeid)
            names = dict(item.dtest.globs) if hasattr(item, "dtest") else {}
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if names:  # a doctest forgets its names when it has run
                item.dtest.globs.update(names)
            if limited and item.nodeid in self.failed:
                return

    def _judged(self, one: Mutation, items: list[pytest.Item]) -> str:
        """What noticed the mutation: a test in most cases, "" for nothing."""
        path, tests = str(Path(one.path).resolve()), self.recorder.tests
        reached = set[str]().union(*(tests.get((path, line), ()) for line in range(one.first, one.last + 1)))
        near = sorted((item for item in items if item.nodeid in reached), key=lambda item: self.seconds[item.nodeid])
        imported, default = "" in tests.get((path, one.line), ()), one.at_import and one.first > 1
        if not default and (one.at_import or imported):  # any test may use what is made at import
            return self._afresh(one, [*near, *(item for item in items if item not in near)])
        if not near:
            return UNREACHED
        if default or _closures(one):
            return self._afresh(one, near)
        slower = set(near[QUICKEST:])  # in the order of their files, so that fixtures serve all that follow each other
        return self._forked(one, [*near[:QUICKEST], *(item for item in items if item in slower)])

    def _fails_again(self, test: str, items: list[pytest.Item]) -> bool:
        """Whether the test fails without a mutation too when it runs a second time: then it judges nothing."""
        if test not in self.trusted and self._forked(None, [item for item in items if item.nodeid == test]):
            self.failed.add(test)
        self.trusted.add(test)
        return test in self.failed

    def _limit(self, items: list[pytest.Item]) -> float:
        return self.grace + PATIENCE * sum(self.seconds[item.nodeid] for item in items)

    def _forked(self, one: Mutation | None, items: list[pytest.Item]) -> str:
        """Name of the first test that fails in a process of its own."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                if one is not None:
                    _mutate(one)
                before = set(self.failed)
                self._run(items, limited=True)
                os.write(write, "".join(self.failed - before).encode())
            except BaseException as error:  # a mutation that stops pytest itself
                os.write(write, f"{type(error).__name__}: {error}".encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            killer = answer.read()
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            stopped = os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM)
            return ENDLESS if stopped else f"signal {os.WTERMSIG(status)}"
        return killer

    def _afresh(self, one: Mutation, items: list[pytest.Item]) -> str:
        """What `_forked` answers, for lines that run at import: from a new process that reads the mutated file."""
        path, names = Path(one.path), Path("mutate-tests.txt")
        source, stamp = path.read_bytes(), path.stat()
        names.write_text("\n".join(item.nodeid for item in items), "utf-8")
        try:
            path.write_bytes(one.applied(source))
            os.utime(path, (stamp.st_atime, stamp.st_mtime + 60))  # or Python takes the bytecode of before
            command = [sys.executable, "-m", "pytest", *PYTEST, "-x", f"@{names}"]
            run = subprocess.run(command, capture_output=True, text=True, timeout=10 * self._limit(items))
        except subprocess.TimeoutExpired:
            return ENDLESS
        finally:
            path.write_bytes(source)
            os.utime(path, (stamp.st_atime, stamp.st_mtime))
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
        return next(iter(failed), f"pytest ended with {run.returncode}") if run.returncode else ""


def _closures(one: Mutation) -> bool:
    """Whether a function takes other names from around it: such code cannot replace that of a loaded function."""
    source = Path(one.path).read_bytes()
    old, new = _functions(one.path, source), _functions(one.path, one.applied(source))
    return any(new[name].co_freevars != code.co_freevars for name, code in old.items() if name in new)


def _mutate(one: Mutation) -> None:
    """Give every loaded function of the file the code that it has in the mutated file."""
    path = str(Path(one.path).resolve())
    new = _functions(path, one.applied(Path(path).read_bytes()))
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == path:
            thing.__code__ = new.get(_name(thing.__code__), thing.__code__)
        elif isinstance(thing, functools._lru_cache_wrapper):
            thing.cache_clear()


def _functions(path: str, source: bytes) -> dict[tuple[str, int], CodeType]:
    """Code of every function in a file, by name and line."""
    found, rest = {}, [compile(source, path, "exec")]
    while rest:
        code = rest.pop()
        found[_name(code)] = code
        rest += [part for part in code.co_consts if isinstance(part, CodeType)]
    return found


def _name(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def judge(copy: Path, room: str, mutations: list[Mutation], wish: argparse.Namespace) -> Iterator[list[Any]]:
    """What the plugin reports from a pytest process in the copy: the tests, then a verdict for each mutation."""
    folder = next(copy.glob(f"src/*/{room}"))
    settings = os.environ | {
        "CI": "1",  # hypothesis draws the same examples each time
        "PYTHONPATH": str(copy / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **{f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "SACCADE")},
    }
    read, write = os.pipe()
    order, log = copy.parent / "order.json", copy.parent / "log.txt"
    plugin = {"folder": f"{folder}{os.sep}", "mutations": [asdict(one) for one in mutations], "grace": wish.grace}
    order.write_text(json.dumps([wish.tests or [f"tests/{room}", str(folder)], plugin | {"reports": write}]), "utf-8")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(order)],
            cwd=copy, env=settings, stdout=out, stderr=out, pass_fds=[write], start_new_session=True,
        )  # fmt: skip
    os.close(write)
    try:
        with os.fdopen(read) as reports:
            yield from map(json.loads, reports)
        process.wait()
    finally:  # also after Ctrl-C
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # with all that it started
        process.wait()
    if process.returncode not in (0, 1):
        sys.exit(f"pytest could not run the tests of {room}:\n{log.read_text('utf-8')[-3000:]}")


def serve(order: str) -> int:
    tests, plugin = json.loads(Path(order).read_text("utf-8"))
    return int(pytest.main([*PYTEST, *tests], plugins=[Judge(**plugin)]))


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--serve"]:
        return serve(arguments[1])
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="*", default=ROOMS, help=f"Default: {' '.join(ROOMS)}.")
    parser.add_argument("--count", type=int, default=75, help="Mutations per room. Default: 75.")
    parser.add_argument("--seed", type=int, default=0, help="Default: 0.")
    parser.add_argument("--line", nargs="+", default=[], help="FILE.py:LINE: every mutation of it instead of a draw.")
    parser.add_argument("--tests", nargs="+", default=[], help="Default: all tests of the room.")
    parser.add_argument("--grace", type=float, default=20, help="Seconds before a mutation is endless. Default: 20.")
    parser.add_argument("--root", type=Path, default=ROOT, help="Default: this checkout.")
    wish = parser.parse_args(arguments)
    os.environ.setdefault("SACCADE_DATA", str(wish.root.resolve().parent / "shared" / "data"))
    for stop in (signal.SIGINT, signal.SIGTERM):  # also in the background, where Ctrl-C is ignored otherwise
        signal.signal(stop, lambda *_: sys.exit("stopped"))
    table, survivors = {}, []
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        copy = Path(folder).resolve() / "checkout"
        shutil.copytree(wish.root, copy, ignore=shutil.ignore_patterns(*LEFT_BEHIND))  # compiled loops come along
        for room in wish.rooms:
            mutations = draw(copy, room, wish)
            reports = judge(copy, room, mutations, wish)
            _, count, failed = next(reports)
            print(f"== {room}: {len(mutations)} mutations, {count} tests", *failed, sep="\n   without: ", flush=True)
            table[room] = Counter[str]()
            for one, (verdict, why) in zip(mutations, reports, strict=True):
                table[room][verdict] += 1
                survivors += [f"{one} ({why})" if why else str(one)] if verdict == "survived" else []
                print(f"{verdict:9}{one}", f"  [{why.splitlines()[0]}]" if why else "", flush=True)
    print(f"\n{'room':14}{'killed':>9}{'endless':>9}{'survived':>9}")
    for room, counts in table.items():
        print(f"{room:14}{counts['killed']:9}{counts['endless']:9}{counts['survived']:9}")
    print("\nSurvivors", *(survivors or ["none"]), sep="\n  ")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
