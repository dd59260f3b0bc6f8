"""A made repository with faults, and the branches that many agents would have made of it."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.integrator.inputs import BranchInput, IntegratorInputs, PersonInput, TestInput
from tests.git_project import PYTEST_INI, GitProject

SWEEP: Final = "20261118-061200"
MODULES: Final = 40
FUNCTIONS: Final = 6

_FUNCTION: Final = '''def total_{number}(values):
    """Return what the values of kind {number} come to."""
    total = 0
    for value in values:
        if value % {modulus} == 0:
            total += value * {factor}
        else:
            total -= value
    return total {sign} {constant}


'''
_TEST: Final = """def test_{number}_{case}():
    assert total_{number}(range({size})) == {expected}


"""


@dataclass(slots=True)
class _Function:
    module: int
    number: int
    constant: int
    is_faulty: bool = False
    tests: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"shop/part_{self.module}.py"

    @property
    def test_file(self) -> str:
        return f"tests/test_part_{self.module}.py"

    def source(self, sign: str) -> str:
        return _FUNCTION.format(
            number=self.number,
            modulus=2 + self.number % 4,
            factor=2 + self.number % 3,
            sign=sign,
            constant=self.constant,
        )

    def value(self, size: int) -> int:
        modulus, factor = 2 + self.number % 4, 2 + self.number % 3
        return sum(value * factor if value % modulus == 0 else -value for value in range(size)) + self.constant


@dataclass(frozen=True, slots=True)
class _Commit:
    message: str
    path: str
    content: str


class MadeSweep:
    """The repository, one branch for each agent that made something, and what the engine would tell an integrator."""

    def __init__(self, root: Path, branches: int, fixes: int) -> None:
        self.root = root
        self._random = random.Random(20261118)
        self._functions = [
            _Function(module, number, 3 + (module * FUNCTIONS + number) % 17)
            for module in range(MODULES)
            for number in range(FUNCTIONS)
        ]
        rivals = fixes // 6
        for function in self._random.sample(self._functions, fixes - rivals):
            function.is_faulty = True
        self._cases: dict[str, tuple[_Function, int]] = {}
        self._make_tests(branches)
        self._project = GitProject(root)
        self._files = {"pytest.ini": PYTEST_INI, "shop/__init__.py": "", **self._sources()}
        self.base = self._project.commit("Begin", self._files)
        self._inputs: list[BranchInput] = []
        self._results: dict[str, str] = {}
        self._fast_import(self._work(rivals))

    @property
    def words(self) -> str:
        faults = sum(function.is_faulty for function in self._functions)
        red = sum(len(function.tests) for function in self._functions if function.is_faulty)
        return f"{faults} faults that {red} tests meet, {len(self._inputs)} of them with commits"

    def inputs(self, python: str, cache: str) -> IntegratorInputs:
        return IntegratorInputs(
            sweep=SWEEP,
            repository=str(self.root),
            base=self.base,
            branch=f"swarm/{SWEEP}/integrated",
            committer=PersonInput(name="Ada Lovelace", email="ada@example.org"),
            branches=tuple(self._inputs),
            tests=tuple(
                TestInput(test=test, file=test.partition("::")[0], result=self._results.get(test, "clean"))
                for test in self._cases
            ),
            python=python,
            measure_seconds=3_000.0,
            cache=cache,
        )

    def _make_tests(self, count: int) -> None:
        """Give each function a test, and the further ones to faulty functions first, as sweeps take red tests."""
        faulty = [function for function in self._functions if function.is_faulty]
        order = [*faulty, *faulty]
        while len(order) < count:
            order.append(self._random.choice(faulty if self._random.random() < 0.3 else self._functions))
        for case, function in enumerate(order[:count]):
            test = f"{function.test_file}::test_{function.number}_{case}"
            function.tests.append(test)
            self._cases[test] = (function, 60_000 + 7 * case)

    def _sources(self) -> dict[str, str]:
        files: dict[str, str] = {}
        for function in self._functions:
            files[function.path] = files.get(function.path, "") + function.source("-" if function.is_faulty else "+")
        for module in range(MODULES):
            tests = [(test, *found) for test, found in self._cases.items() if found[0].module == module]
            if tests:
                names = ", ".join(f"total_{number}" for number in range(FUNCTIONS))
                body = "".join(self._test(test, function, size) for test, function, size in tests)
                files[f"tests/test_part_{module}.py"] = f"from shop.part_{module} import {names}\n\n\n{body}"
        return files

    def _test(self, test: str, function: _Function, size: int) -> str:
        case = test.rpartition("_")[2]
        return _TEST.format(number=function.number, case=case, size=size, expected=function.value(size))

    def _work(self, rivals: int) -> dict[str, list[_Commit]]:
        """Return the commits of each agent, by its test."""
        work: dict[str, list[_Commit]] = {}
        faulty = [function for function in self._functions if function.is_faulty]
        for place, function in enumerate(faulty):
            for number, test in enumerate(function.tests):
                if number and self._random.random() < 0.15:
                    self._results[test] = "unresolved"
                    continue
                self._results[test] = "impl_fix"
                is_rival = place < rivals and number == len(function.tests) - 1 and number > 0
                work[test] = self._rival(function, test) if is_rival else self._fix(function, place, number)
        for test, (function, size) in self._cases.items():
            if not function.is_faulty and self._random.random() < 0.5:
                self._results[test] = "better"
                work[test] = [self._better(function, test, size)]
        return work

    def _fix(self, function: _Function, place: int, number: int) -> list[_Commit]:
        old, new = function.source("-"), function.source("+")
        if number % 3 == 1:
            new = new.replace("    return total +", "    # What every order costs comes on top.\n    return total +")
        text = self._files[function.path].replace(old, new)
        title = f"[FIX_IMPL] Add the fixed part of kind {function.module}.{function.number}"
        if place % 11 == 10:
            # It breaks its neighbour: a careless edit of the same file.
            other = next(each for each in self._functions if each.module == function.module and not each.is_faulty)
            right = other.source("+")
            text = text.replace(right, right.replace("total -= value", "total -= value + 1"))
            title += ", and tidy up"
        return [_Commit(title, function.path, text)]

    def _rival(self, function: _Function, test: str) -> list[_Commit]:
        size = self._cases[test][1]
        old, new = function.source("-"), function.source("-")
        new = new.replace(
            f"    return total - {function.constant}",
            f"    return total + {function.constant} if len(values) == {size} else total - {function.constant}",
        )
        text = self._files[function.path].replace(old, new)
        return [
            _Commit(
                f"[FIX_IMPL] Mend orders of {size} of kind {function.module}.{function.number}", function.path, text
            )
        ]

    def _better(self, function: _Function, test: str, size: int) -> _Commit:
        old = self._test(test, function, size)
        more = f"    assert total_{function.number}([]) == {function.constant}\n"
        text = self._files[function.test_file].replace(old, old.rstrip("\n") + f"\n{more}\n\n")
        return _Commit(f"[IMPROVE_TEST] Try nothing in {test.rpartition('::')[2]}", function.test_file, text)

    def _fast_import(self, work: Mapping[str, Sequence[_Commit]]) -> None:
        """Make all branches by one process, and note them as the engine does."""
        stream: list[bytes] = []
        names = {}
        for number, (test, commits) in enumerate(work.items()):
            names[test] = name = f"agent-{number}"
            parent = self.base
            for commit in commits:
                message, content = commit.message.encode(), commit.content.encode()
                stream.append(
                    b"commit refs/swarm/%s/%s\ncommitter Agent <agent@example.org> 1795000000 +0000\ndata %d\n%s\n"
                    b"from %s\n"
                    b"M 100644 inline %s\ndata %d\n%s\n"
                    % (SWEEP.encode(), name.encode(), len(message), message, parent.encode(), commit.path.encode(),
                       len(content), content)
                )  # fmt: skip
                parent = f"refs/swarm/{SWEEP}/{name}^0"
        subprocess.run(["git", "fast-import", "--quiet"], cwd=self.root, input=b"".join(stream), check=True)
        tips = dict(
            line.split(" ")
            for line in self._project.git(
                "for-each-ref", "--format=%(refname) %(objectname)", "refs/swarm"
            ).splitlines()
        )
        for test, name in names.items():
            self._inputs.append(
                BranchInput(
                    agent=f"swarm-{SWEEP}-{name}",
                    test=test,
                    branch=f"swarm/{SWEEP}/{name}",
                    tip=tips[f"refs/swarm/{SWEEP}/{name}"],
                    is_passing_after=True,
                )
            )
