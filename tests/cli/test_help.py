"""The help: examples as they are typed, options under headings, exit codes, nothing heavy."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bayes_lcs.cli import app

COMMANDS = ["compare", "cluster", "scan", "coreset", "demo"]


def shown(*words):
    found = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80", "TERM": "dumb"})
    assert found.exit_code == 0, found.output
    return [line.strip() for line in found.output.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_stand_in_lines_of_their_own(command):
    lines = shown(command)
    examples = [line for line in lines if line.startswith(f"bayes-lcs {command} ")]
    assert examples
    after = lines[lines.index("For example:") + 2 :][: len(examples)]
    assert after == examples  # none is wrapped into the next


@pytest.mark.parametrize("command", COMMANDS[:4])
def test_options_stand_under_headings(command):
    text = "\n".join(shown(command))
    for heading in ("The data", "The method", "The run and its results"):
        assert f"─ {heading} ─" in text


def test_exit_codes_are_said():
    lines = shown()
    codes = [line.split()[0] for line in lines[lines.index("Exit codes:") + 2 :][:4]]
    assert codes == ["0", "1", "2", "130"]


def test_help_imports_nothing_heavy():
    program = (
        "import json, sys\nfrom bayes_lcs.cli import app\nsys.argv = ['x', 'cluster', '--help']\n"
        "try:\n    app()\nexcept SystemExit:\n    print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}
    assert "bayes_lcs" in loaded
    assert not loaded & {"jax", "numpy", "pandas", "scipy", "sklearn", "pyarrow", "matplotlib"}
