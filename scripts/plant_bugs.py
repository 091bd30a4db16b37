"""Plant known bugs, one at a time, and check that the tests notice.

    python scripts/plant_bugs.py [--list tests/planted_bugs.toml] [--jobs 2] [NAME ...]
    python scripts/plant_bugs.py --share 3 --after-tests

Each `[[bug]]` of the list names a `file`, the exact text to `find` in it (it must occur exactly
once), what to `replace` it with, and the `tests` that must then fail: pytest node ids, or options
written as one word (`"-kprototype"`). The checkout is copied, the bug planted in the copy, and the
tests run there with the interpreter that runs this script. One run without any bug comes first:
a test that fails anyway catches nothing; `--after-tests` leaves it out where the whole suite has
just passed. `--share N` plants one bug in N, others with every commit; all are checked for being
stale.

    caught   at least one of the named tests failed
    MISSED   they all passed: the tests cannot see this bug
    STALE    `find` does not occur exactly once any more: rewrite the entry
    BROKEN   pytest could not run the tests (or they fail without the bug), so nothing was shown

The exit code is 0 only if every bug was caught.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_SECONDS = 600
TESTS_FAILED = 1  # pytest's exit code; 2 and above mean that it could not run them
OUTPUT_LINES = 25


@dataclass(frozen=True)
class Bug:
    name: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    word: str
    detail: str = ""
    seconds: float = 0.0


def read_bugs(path: Path) -> list[Bug]:
    with path.open("rb") as stream:
        listed = tomllib.load(stream)
    if unknown := set(listed) - {"bug"}:
        raise SystemExit(f"{path}: unknown keys {sorted(unknown)}; entries are [[bug]]")
    bugs = []
    for number, entry in enumerate(listed.get("bug", []), start=1):
        fields = {"name": f"bug-{number}", **entry}
        if set(fields) != {"name", "file", "find", "replace", "tests"}:
            raise SystemExit(f"{path}: entry {number} needs file, find, replace, tests (and name)")
        if not fields["tests"] or fields["find"] == fields["replace"]:
            raise SystemExit(f"{path}: entry {number} has no tests, or changes nothing")
        bugs.append(Bug(**{**fields, "tests": tuple(fields["tests"])}))
    names = [bug.name for bug in bugs]
    if len(set(names)) < len(names):
        raise SystemExit(f"{path}: two entries have the same name")
    return bugs


def checkout_files() -> list[str]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted({name for name in listing.split("\0") if name and (ROOT / name).is_file()})


def copy_checkout(files: list[str], target: Path) -> None:
    for name in files:
        destination = target / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, destination)


def run_tests(copy: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    # -m "" undoes the default that leaves slow tests out; no:xdist, since bugs run in parallel.
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "", "-p", "no:xdist"]
    command += ["-p", "no:cacheprovider", "--tb=line", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return -1, f"no answer after {TIMEOUT_SECONDS} s"
    return done.returncode, "\n".join(done.stdout.splitlines()[-OUTPUT_LINES:])


def stale(bug: Bug) -> str:
    """Why a bug cannot be planted any more, or nothing."""
    target = ROOT / bug.file
    if not target.is_file():
        return f"there is no file {bug.file}"
    occurrences = target.read_text(encoding="utf-8").count(bug.find)
    return "" if occurrences == 1 else f"{occurrences} occurrences in {bug.file} of: {bug.find}"


def share_of(bugs: list[Bug], share: int) -> list[Bug]:
    """One bug in so many; which ones, the commit decides."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return bugs[int(commit[:8], 16) % share :: share]


def judge(bug: Bug, files: list[str]) -> Verdict:
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="planted-bug-") as folder:
        copy = Path(folder)
        copy_checkout(files, copy)
        target = copy / bug.file
        source = target.read_text(encoding="utf-8")
        target.write_text(source.replace(bug.find, bug.replace), encoding="utf-8")
        code, output = run_tests(copy, bug.tests)
    seconds = time.monotonic() - start
    if code == TESTS_FAILED:
        return Verdict("caught", seconds=seconds)
    if code == 0:
        return Verdict("MISSED", f"passed all the same: {' '.join(bug.tests)}", seconds)
    return Verdict("BROKEN", f"pytest ended with {code}\n{output}", seconds)


def check_without_bugs(bugs: list[Bug], files: list[str], jobs: int) -> bool:
    """Run every named test once in an unchanged copy; entries with the same options share a run."""
    runs: dict[tuple[str, ...], dict[str, None]] = {}
    for bug in bugs:
        options = tuple(test for test in bug.tests if test.startswith("-"))
        runs.setdefault(options, {}).update(dict.fromkeys(t for t in bug.tests if t not in options))
    with tempfile.TemporaryDirectory(prefix="planted-bug-none-") as folder:
        copy_checkout(files, Path(folder))
        with ThreadPoolExecutor(jobs) as pool:
            done = pool.map(lambda run: run_tests(Path(folder), (*run[0], *run[1])), runs.items())
            broken = [(code, output) for code, output in done if code != 0]
    for code, output in broken:
        print(f"BROKEN   without any bug, pytest ended with {code}\n{output}")
    return not broken


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant known bugs and check that tests fail.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these entries")
    parser.add_argument("--list", type=Path, default=ROOT / "tests" / "planted_bugs.toml")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--share", type=int, default=1, metavar="N", help="plant one in N")
    parser.add_argument("--after-tests", action="store_true", help="the tests have just passed")
    arguments = parser.parse_args()

    bugs = read_bugs(arguments.list)
    if unknown := set(arguments.names) - {bug.name for bug in bugs}:
        parser.error(f"no entry named {', '.join(sorted(unknown))}")
    if arguments.names:
        bugs = [bug for bug in bugs if bug.name in arguments.names]
    if not bugs:
        print("No planted bugs are listed.")
        return 0

    uncaught = 0
    for bug in bugs:
        if why := stale(bug):
            uncaught += 1
            print(f"STALE    {bug.name}\n    {why}", flush=True)
    if uncaught:
        return 1
    bugs = share_of(bugs, arguments.share)
    files = checkout_files()
    if not arguments.after_tests and not check_without_bugs(bugs, files, arguments.jobs):
        return 1
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for bug, verdict in zip(bugs, pool.map(lambda bug: judge(bug, files), bugs), strict=True):
            print(f"{verdict.word:8} {bug.name}  ({verdict.seconds:.0f} s)", flush=True)
            if verdict.word != "caught":
                uncaught += 1
                print("    " + verdict.detail.replace("\n", "\n    "), flush=True)
    print(f"{len(bugs) - uncaught} of {len(bugs)} planted bugs caught")
    return 1 if uncaught else 0


if __name__ == "__main__":
    raise SystemExit(main())
