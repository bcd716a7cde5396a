"""Mutation test: a seeded sample of small faults in the sources, and the tests that notice each of them.

Run it as `python -m tests.mutants --output mutants.jsonl`. A mutant is one change of one node of a module's syntax
tree, such as `<` to `<=` or a number plus one. No file is edited: each mutant runs in a forked child process that loads
the changed module through an import hook, and so do the processes that its tests start.

A mutant goes through rings of tests until one fails: its mirror (`tests/a/test_b.py` for `fedreuse/a/b.py`), the slow
tests of its mirror, its package with the golden traces and the conformance suite, and the slow tests of its package (of
a method: its conformance cases). A ring must pass without a mutant first; that also sets its time limit.

Mutants are identified by module, qualified name of the function, operator and ordinal among the function's points of
that operator. `--only FILE` runs the mutants of a former output again; `--map FILE` renames their modules first (lines
of `old.module new.module`, or `old.module:function new.module:function`). A mutant without a place in this tree is
`gone`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import hashlib
import importlib
import importlib.util
import json
import marshal
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("compression.wire", "compression.codecs", "compression.links", "engine", "accounting",
            "methods.dg_fedreuse", "methods.lean")  # fmt: skip
EVERYWHERE = ("tests/golden", "tests/conformance")
CLUSTER = "tests/engine/executors/test_ray.py"  # needs a Ray cluster, whose processes outlive a killed child
PRELOADED = ("numpy", "torch", "pytest", "hypothesis", "hypothesis.strategies", "hypothesis.extra.numpy", "msgpack",
             "yaml", "safetensors.numpy", "zlib", "multiprocessing.connection", "lazy_loader")  # fmt: skip
FAST, SLOW = "not slow and not long and not deploy", "slow and not long and not deploy"
SHORTEST_LIMIT, LIMIT_FACTOR, MEMORY = 20.0, 5.0, 16 << 30
WAITING = 3  # a limit is of processor time, so that a busy machine kills no mutant; of real time it is so much longer

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}  # fmt: skip
SWAPS = {"min": "max", "minimum": "maximum", "any": "all", "floor": "ceil", "argmin": "argmax"}
SWAPS |= {new: old for old, new in SWAPS.items()}
VALUES = {"require": slice(0, 1), "isinstance": slice(0, 1), "cast": slice(1, 2)}  # other arguments: texts, types


class Point(NamedTuple):
    """A place for a mutation: an attribute of a node, its new value, and the expression or statement that is shown."""

    function: str
    operator: str
    node: Any
    name: str
    new: Any
    shown: Any

    def change(self) -> Any:
        """Mutate the tree and return the former value."""
        old = getattr(self.node, self.name)
        setattr(self.node, self.name, self.new)
        return old


@dataclass(frozen=True)
class Mutant:
    """One change of one module, and after its run the outcome."""

    module: str
    function: str
    operator: str
    ordinal: int
    line: int
    before: str
    after: str
    package: str
    status: str = "new"  # killed, survived, timeout (counts as killed), gone
    test: str = ""
    ring: int = 0
    seconds: float = 0.0
    was: str = ""  # identity in the output that --only names
    before_status: str = ""
    is_changed: bool = False  # found by its ordinal in an edited line: perhaps another mutant than before
    index: int = field(default=-1, compare=False)  # place among the module's points

    @property
    def identity(self) -> str:
        """Text that names this mutant in every tree with the same function."""
        return f"{self.module}:{self.function}:{self.operator}:{self.ordinal}"


# ---- mutation points


def walk(node: ast.AST, function: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the nodes that can be mutated in source order, each with its function's qualified name."""
    yield function, node
    for child in _parts(node):
        inner = function
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{function}.{node.name}".lstrip(".")
        if not _is_excluded(child):
            yield from walk(child, inner)


def _parts(node: ast.AST) -> list[ast.AST]:
    """Return the children without decorators, annotations, messages and types."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*node.args.defaults, *(value for value in node.args.kw_defaults if value), *node.body]
        case ast.ClassDef():
            return [*node.body]
        case ast.AnnAssign():
            return [node.value] if node.value else []
        case ast.Call(func=ast.Name(id=name)) if name in VALUES:
            return [*node.args[VALUES[name]]]
        case _:
            return [*ast.iter_child_nodes(node)]


def _is_excluded(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "logger" | "logging"))):
            return True
    return False


def points(tree: ast.Module) -> Iterator[Point]:
    """Yield all mutation points of a module, always in the same order."""
    for function, node in walk(tree):
        for operator, name, new in _changes(node, is_code=bool(function)):
            shown = node.test if operator == "condition" else node
            yield Point(function or "<module>", operator, node, name, new, shown)


def _changes(node: Any, *, is_code: bool) -> Iterator[tuple[str, str, Any]]:
    """Yield operator, attribute and new value of each mutation of a node."""
    match node:
        case ast.Compare():
            for at, op in enumerate(node.ops):
                yield "compare", "ops", [*node.ops[:at], COMPARISONS[type(op)](), *node.ops[at + 1 :]]
        case ast.BinOp() | ast.AugAssign() if type(node.op) in ARITHMETIC and not _is_text(node):
            if is_code or not isinstance(node.op, ast.BitOr):  # outside functions `|` joins types
                yield "arithmetic", "op", ARITHMETIC[type(node.op)]()
        case ast.BoolOp():
            yield "and_or", "op", ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.Not()):
            yield "not", "operand", ast.UnaryOp(ast.Not(), node.operand)
        case ast.UnaryOp(op=ast.USub()):
            yield "minus", "op", ast.UAdd()
        case ast.Constant(value=bool()):
            yield "bool", "value", not node.value
        case ast.Constant(value=int() | float() as number) if number + 1 != number:
            yield "number", "value", number + 1
        case ast.Return() if node.value is not None and ast.unparse(node.value) != "None":
            yield "return", "value", ast.Constant(None)
        case ast.Expr(value=ast.Call()):
            yield "call", "value", ast.Constant(None)
        case ast.Name(ctx=ast.Load()) if node.id in SWAPS:
            yield "swap", "id", SWAPS[node.id]
        case ast.Attribute(ctx=ast.Load()) if node.attr in SWAPS:
            yield "swap", "attr", SWAPS[node.attr]
        case ast.Slice():
            for name in ("lower", "upper"):
                if not isinstance(bound := getattr(node, name), ast.Constant | None):
                    yield "slice", name, ast.BinOp(bound, ast.Add(), ast.Constant(1))
        case ast.If() | ast.IfExp() | ast.While():
            if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):  # these are mutated themselves
                yield "condition", "test", ast.UnaryOp(ast.Not(), node.test)


def _is_text(node: Any) -> bool:
    sides = (node.value,) if isinstance(node, ast.AugAssign) else (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", None), str) for side in sides)


def mutants_of(module: str, package: str) -> list[Mutant]:
    """Return all mutants of a module, none of them run."""
    source = path_of(module).read_text(encoding="utf-8")
    lines = [line.encode() for line in source.splitlines()]  # offsets of nodes count bytes
    counts: Counter[tuple[str, str]] = Counter()
    found = []
    for index, point in enumerate([*points(ast.parse(source))]):
        at, key = point.shown, (point.function, point.operator)
        before = " ".join(line.decode().strip() for line in lines[at.lineno - 1 : at.end_lineno])
        old = point.change()
        new = ast.unparse(ast.fix_missing_locations(at if at is point.node else point.new))
        setattr(point.node, point.name, old)
        head, tail = lines[at.lineno - 1][: at.col_offset], lines[at.end_lineno - 1][at.end_col_offset :]
        after = f"{head.decode()}{new}{tail.decode()}".strip()
        found.append(Mutant(module, *key, counts[key], at.lineno, before[:200], after[:200], package, index=index))
        counts[key] += 1
    return found


def mutated_code(mutant: Mutant) -> CodeType:
    """Compile the mutant's module with its one change; lines keep their numbers."""
    path = path_of(mutant.module)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    [*points(tree)][mutant.index].change()
    return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)


# ---- where things are


def path_of(module: str) -> Path:
    """Return the source file of a module."""
    return ROOT.joinpath("src", *module.split(".")).with_suffix(".py")


def modules_of(package: str) -> list[str]:
    """Return the modules of a package (or the one module) of fedreuse."""
    base = ROOT.joinpath("src", "fedreuse", *package.split("."))
    paths = sorted(base.rglob("*.py")) if base.is_dir() else [base.with_suffix(".py")]
    names = [".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in paths]
    return [name for name in names if not name.endswith(".__init__") and mirror(name) != CLUSTER]


def mirror(module: str) -> str:
    """Return the test file of a module."""
    *folders, name = module.split(".")[1:]
    return "/".join(["tests", *folders, f"test_{name}.py"])


def rings(mutant: Mutant) -> Iterator[tuple[str, ...]]:
    """Yield pytest's arguments of each ring of tests."""
    own = mirror(mutant.module)
    folder = "tests/" + mutant.package.replace(".", "/")
    is_package = (ROOT / folder).is_dir()
    if (ROOT / own).exists():
        yield "-m", FAST, own
        yield "-m", SLOW, own
    around = folder if is_package else str(Path(folder).parent)
    yield "-m", FAST, *(place for place in (around, *EVERYWHERE) if (ROOT / place).exists())
    if is_package:
        yield "-m", SLOW, folder, f"--ignore={CLUSTER}"
    else:
        yield "-m", SLOW, "tests/conformance", "-k", mutant.module.rpartition(".")[2]


# ---- running


class _Hook:
    """Import hook: finder and loader of one module, whose code is not that of its file."""

    def __init__(self, name: str, path: str, code: str) -> None:
        self._name, self._path, self._code = name, path, Path(code)

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Find the one module."""
        del path, target
        found = importlib.util.spec_from_file_location(name, self._path, loader=self)  # type: ignore[arg-type]
        return found if name == self._name else None

    def create_module(self, spec: object) -> None:
        """Leave this to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the stored code."""
        exec(marshal.loads(self._code.read_bytes()), module.__dict__)


def install(name: str, path: str, code: str) -> None:
    """Load a module from stored code in this process from now on."""
    sys.meta_path.insert(0, _Hook(name, path, code))


class _FirstFailure:
    """Pytest plugin that keeps the name of the first test that fails."""

    test = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep a failed test."""
        if report.failed and not self.test:
            self.test = report.nodeid

    pytest_collectreport = pytest_runtest_logreport


class Runner:
    """Runs rings of tests in forked children, with and without mutants."""

    def __init__(self, folder: Path, limit: float) -> None:
        self._folder, self._limit = folder, limit
        self._limits: dict[tuple[str, ...], float] = {}

    def run(self, mutant: Mutant) -> Mutant:
        """Return the mutant with its outcome."""
        code = self._folder / "code"
        code.write_bytes(marshal.dumps(mutated_code(mutant)))
        seconds = 0.0
        for number, ring in enumerate(rings(mutant), start=1):
            if ring not in self._limits:
                self._measure(ring)
            start = time.monotonic()
            status, test = self._child(
                ring, self._limits[ring], (mutant.module, str(path_of(mutant.module)), str(code))
            )
            seconds = round(seconds + time.monotonic() - start, 2)
            mutant = replace(mutant, status=status, test=test, ring=number, seconds=seconds)
            if status != "survived":
                break
        return mutant

    def _measure(self, ring: tuple[str, ...]) -> None:
        start = time.monotonic()
        status, test = self._child(ring, 10 * self._limit, None)
        if status != "survived":
            raise SystemExit(f"without a mutant: {status} {test} in {' '.join(ring)}")
        self._limits[ring] = min(self._limit, max(SHORTEST_LIMIT, LIMIT_FACTOR * (time.monotonic() - start)))

    def _child(self, ring: tuple[str, ...], limit: float, mutant: tuple[str, str, str] | None) -> tuple[str, str]:
        failed = self._folder / "failed"
        failed.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            try:
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
                self._run_tests(ring, mutant, failed)
            except BaseException as error:  # a forked child must never return into the parent's code
                failed.write_text(f"outside the tests: {error!r}", encoding="utf-8")
            finally:
                os._exit(99)
        end = time.monotonic() + WAITING * limit
        while (found := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # on time-out the child, otherwise what it left behind
        if found == (0, 0):
            os.waitpid(pid, 0)
            return "timeout", ""
        code = os.waitstatus_to_exitcode(found[1])
        if code == -signal.SIGXCPU:
            return "timeout", ""
        if code in (0, 5):  # passed, or the ring has no tests
            return "survived", ""
        return "killed", failed.read_text(encoding="utf-8") if failed.exists() else f"exit code {code}"

    def _run_tests(self, ring: tuple[str, ...], mutant: tuple[str, str, str] | None, failed: Path) -> None:
        """Run tests in this process, a fresh child, and end it."""
        import pytest

        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hooks = self._folder / "hooks"
        hooks.mkdir(exist_ok=True)
        script = ""
        if mutant is not None:
            install(*mutant)
            script = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
            script += f"from tests.mutants import install; install{mutant!r}\n"
        (hooks / "sitecustomize.py").write_text(script, encoding="utf-8")
        os.environ["PYTHONPATH"] = os.pathsep.join([str(hooks), str(ROOT / "src"), str(ROOT)])
        sys.argv[:] = ["pytest"]
        plugin = _FirstFailure()
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis was imported before
        code = int(pytest.main([*options, f"--basetemp={self._folder}/tmp", *ring], plugins=[plugin]))
        if plugin.test:
            failed.write_text(plugin.test, encoding="utf-8")
        os._exit(code)


def prepare() -> None:
    """Import what tests need besides fedreuse, and make hypothesis repeatable and short."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    found = importlib.util.find_spec("fedreuse")
    assert found is not None
    assert str(found.origin).startswith(str(ROOT / "src")), found.origin
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    from hypothesis import Phase, settings

    # profiles that conftest.py derives from the current one inherit this: same examples always, no shrinking
    settings.register_profile("mutants", derandomize=True, database=None, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutants")
    assert not [name for name in sys.modules if name.split(".")[0] == "fedreuse"]
    gc.collect()
    gc.freeze()


# ---- choosing and reporting


def sample(packages: list[str], count: int, seed: int) -> list[Mutant]:
    """Draw mutants; the order is a hash of seed and identity, so that changes elsewhere leave the draw as it is."""
    every = [mutant for package in packages for name in modules_of(package) for mutant in mutants_of(name, package)]
    print(f"{len(every)} mutants, {count} drawn", file=sys.stderr)
    return sorted(every, key=lambda mutant: hashlib.sha256(f"{seed} {mutant.identity}".encode()).digest())[:count]


def again(former: list[Mutant], names: dict[str, str], packages: list[str]) -> Iterator[Mutant]:
    """Find mutants of a former output in this tree: by their text where that is unique, otherwise by ordinal."""
    known: dict[str, list[Mutant]] = {}
    for old in former:
        module, function = names.get(old.module, old.module), old.function
        module, _, function = names.get(f"{old.module}:{function}", f"{module}:{function}").partition(":")
        package = next((p for p in packages if f"{module}.".startswith(f"fedreuse.{p}.")), old.package)
        if module not in known:
            known[module] = mutants_of(module, package) if path_of(module).exists() else []
        near = [new for new in known[module] if (new.function, new.operator) == (function, old.operator)]
        same = [new for new in near if (new.before, new.after) == (old.before, old.after)]
        chosen = same if len(same) == 1 else [new for new in near if new.ordinal == old.ordinal]
        new = chosen[0] if chosen else replace(old, module=module, function=function, package=package, status="gone")
        is_changed = (new.before, new.after) != (old.before, old.after)
        yield replace(new, was=old.identity, before_status=old.status, is_changed=is_changed)


def read(path: Path) -> list[Mutant]:
    """Read an output."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [Mutant(**json.loads(line)) for line in text.splitlines()]


def table(done: list[Mutant]) -> str:
    """Return the outcomes by package."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for mutant in done:
        counts[mutant.package][mutant.status] += 1
        counts["all"][mutant.status] += 1
    rows = [f"{'package':24}{'killed':>9}{'timeout':>9}{'survived':>9}{'gone':>9}{'score':>9}"]
    for package in [*sorted(set(counts) - {"all"}), "all"]:
        found = counts[package]
        caught = found["killed"] + found["timeout"]
        score = caught / max(1, caught + found["survived"])
        cells = "".join(f"{found[name]:9}" for name in ("killed", "timeout", "survived", "gone"))
        rows.append(f"{package:24}{cells}{score:9.1%}")
    worse = [mutant for mutant in done if mutant.status == "survived" and mutant.before_status in ("killed", "timeout")]
    rows += [f"{sum(mutant.is_changed for mutant in done)} in edited lines"] if any(m.was for m in done) else []
    rows += [f"killed before, survives now: {m.identity} ({m.before} -> {m.after})" for m in worse]
    return "\n".join(rows)


def main() -> None:
    """Run the mutants and write one JSON line for each."""
    parser = argparse.ArgumentParser(description="Mutation test of a sample of the sources.")
    parser.add_argument("packages", nargs="*", default=[*PACKAGES], help="below fedreuse, such as compression.wire")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--limit", type=float, default=60.0, help="most seconds of processor time of a ring of tests")
    parser.add_argument("--output", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--resume", action="store_true", help="skip mutants that the output has")
    parser.add_argument("--only", type=Path, help="former output, whose mutants are run again")
    parser.add_argument("--map", type=Path, help="new names of modules for --only")
    options = parser.parse_args()
    output = options.output.resolve()
    names = dict(line.split() for line in options.map.read_text().splitlines() if line.strip()) if options.map else {}
    if options.only:
        chosen = [*again(read(options.only), names, options.packages)]
    else:
        chosen = sample(options.packages, options.count, options.seed)
    if not options.resume:
        output.unlink(missing_ok=True)
    done = read(output)
    skipped = {mutant.was or mutant.identity for mutant in done}
    prepare()
    with tempfile.TemporaryDirectory() as folder, output.open("a", encoding="utf-8") as file:
        runner = Runner(Path(folder), options.limit)
        for mutant in chosen:
            if (mutant.was or mutant.identity) not in skipped:
                done.append(mutant if mutant.status == "gone" else runner.run(mutant))
                row = {key: value for key, value in asdict(done[-1]).items() if key != "index"}
                print(json.dumps(row), file=file, flush=True)
    print(table(done))


if __name__ == "__main__":
    main()
