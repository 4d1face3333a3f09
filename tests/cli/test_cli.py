"""The shell itself: the group, what it loads, and with which status it leaves."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import click
import pytest

import priorveil as pv
from priorveil.__main__ import main
from priorveil.cli import COMMANDS, commands, doctor, options
from priorveil.cli.screen import FUNCTION_OPTIONS, option_advice
from priorveil.errors import Hint, install_command
from terminal import refused, run

MANY_OPTIONS = 8
HERE = click.Context(commands, info_name="priorveil")


def test_without_a_command_it_shows_where_to_begin() -> None:
    status, out, err = run()
    assert (status, err) == (0, "")
    assert all(door in out for door in ("Run a survey", "Collect from devices", "Study mechanisms"))
    named = set(re.findall(r"priorveil ([a-z]+) ?", out)) - {"collects"}
    assert named <= set(COMMANDS) and len(named) > 5
    assert len(out.splitlines()) < 24 and max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_many_options_are_in_sections_and_the_usual_ones_come_first(name: str) -> None:
    command = commands.get_command(HERE, name)
    assert command is not None
    flags = [param for param in command.params if isinstance(param, click.Option)]
    if not isinstance(command, options.SectionedCommand):
        assert len(flags) <= MANY_OPTIONS
        return
    status, out, _ = run(name, "--help")
    names = {name for param in flags for name in param.opts}
    assert status == 0 and {name for section in command.sections.values() for name in section} <= names
    places = [out.index(f"\n{title}:") for title in command.sections]
    assert places == sorted(places) and places[0] < out.index("\nOther options:")
    assert all(param.opts[-1] in out for param in flags)
    required = {param.opts[-1] for param in flags if param.required}
    assert required <= set(next(iter(command.sections.values()))), "what is required comes first"


@pytest.mark.skipif(os.name == "nt", reason="the examples are for a shell with printf")
@pytest.mark.parametrize("name", ["design", "audit", "privatize", "estimate", "campaign", "simulate"])
def test_an_example_of_the_help_can_be_pasted(name: str, tmp_path: Path) -> None:
    command = commands.get_command(HERE, name)
    assert command is not None and command.epilog is not None
    lines = command.epilog.partition("To try it in an empty folder\n")[2].partition("\n\n")[0]
    assert lines.splitlines()[-1].startswith(f"  priorveil {name} ")
    script = f'set -e; priorveil() {{ "{sys.executable}" -m priorveil "$@"; }}\n{lines}'
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_the_doctor_names_what_is_missing_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, _ = run("doctor", "--json")
    found = json.loads(out)
    assert status == 0 and found["priorveil"] == pv.__version__ and found["reports_per_second"] > 0
    assert found["extras"]["plot"] == {
        "installed": False,
        "missing": ["matplotlib"],
        "install": install_command("plot"),
    }
    status, out, _ = run("doctor")
    assert status == 0 and f"to get plot: {install_command('plot')}" in out and "reports a second" in out


def test_the_doctor_looks_at_the_folder_of_remembered_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PRIORVEIL_STATE", str(tmp_path / "made later" / "answers"))
    status, out, _ = run("doctor", "--json")
    folder = json.loads(out)["folders"]["remembered answers"]
    assert status == 0 and folder["path"].endswith("answers") and folder["writable"]
    assert folder["free_bytes"] > 0 and not (tmp_path / "made later").exists()
    (tmp_path / "file").touch()
    monkeypatch.setenv("PRIORVEIL_STATE", str(tmp_path / "file" / "answers"))
    status, out, _ = run("doctor")
    assert status == 1 and "answers cannot be written to: name another one in PRIORVEIL_STATE" in " ".join(
        out.split()
    )


def test_the_doctor_knows_every_extra_that_users_install() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(doctor.EXTRAS) == set(project["optional-dependencies"]) - {
        "all",
        "docs",
        "dev",
        "spark-connect",
    }


def test_the_shell_completes_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "priorveil"],
        env={
            **os.environ,
            "_PRIORVEIL_COMPLETE": "bash_complete",
            "COMP_WORDS": "priorveil des",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert "design" in done.stdout


def test_version() -> None:
    assert run("--version")[:2] == (0, f"priorveil {pv.__version__}\n")


@pytest.mark.parametrize("name", commands.list_commands(HERE))
def test_the_table_says_what_the_command_says(name: str) -> None:
    command = commands.get_command(HERE, name)
    assert command is not None
    assert command.name == name
    assert COMMANDS[name] == command.get_short_help_str(limit=100)


@pytest.mark.parametrize("name", commands.list_commands(HERE))
def test_every_command_has_help_with_words(name: str) -> None:
    status, out, err = run(name, "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"Usage: priorveil {name}")


def test_every_hint_of_the_library_is_an_option() -> None:
    """Errors name arguments of Python; the command line shows an option for each that a command can cause."""
    source = Path(pv.__file__).parent
    calls = [node for file in source.rglob("*.py") for node in ast.walk(ast.parse(file.read_text()))]
    hints = {
        ast.literal_eval(call.args[0])
        for call in calls
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Hint"
    }
    found = [commands.get_command(HERE, name) for name in COMMANDS]
    options = {option for command in found if command for each in command.params for option in each.opts}
    only_python = {"about", "missing", "prior", "estimate.contrast(weights)", "Prior.cells", "Prior.grid"}
    only_python |= {
        "a tuple with a level of each attribute",
        "codes",
        "frame.stack()",
        "plan.likelihood_blocks(reports)",
        "plan.scores(reports[start:stop])",
        "estimate.averages",
        "plan.scores(reports)",
        "difference(a, b)",
        *("model", "kind", "compliance"),  # of regressions
    }
    assert len(hints) > 5
    assert {f"--{hint}" for hint in hints - FUNCTION_OPTIONS.keys() - only_python} <= options
    words = " ".join(FUNCTION_OPTIONS.values()).replace(",", "").split()
    assert {word for word in words if word.startswith("--")} <= options


def test_a_hint_with_a_query_names_its_kind() -> None:
    assert option_advice(Hint("query", pv.Distribution())) == "use --query distribution"


@pytest.mark.parametrize(
    "name",
    [
        "design",
        "inspect",
        "audit",
        "privatize",
        "estimate",
        "serve",
        "simulate",
        "reproduce",
        "bench",
        "demo",
    ],
)
def test_help_teaches_by_examples(name: str) -> None:
    assert f"Examples\n    priorveil {name}" in run(name, "--help")[1]


def test_help_loads_no_command() -> None:
    code = "import sys, json\nfrom priorveil.cli import run\nassert run(['--help']) == 0\n"
    code += "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stderr)
    ours = [m for m in loaded if m.startswith("priorveil")]
    assert set(ours) == {
        "priorveil",
        "priorveil.cli",
        "priorveil.cli.screen",
        "priorveil.errors",
        "priorveil.formatting",
        "priorveil.interrupts",
        "priorveil.progress_bar",
        "priorveil.showing",
    }
    assert not {"rich", "numpy"} & set(loaded)


def test_interrupting_leaves_with_130(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "q.csv").write_text("0.5,0.5\n0.5,0.5\n")
    (tmp_path / "p.csv").write_text("0.5\n0.5\n")
    monkeypatch.setattr("priorveil.notions.leakage", interrupt)
    status, _, err = run("audit", tmp_path / "q.csv", tmp_path / "p.csv")
    assert (status, err.strip()) == (130, "stopped")


# A ctrl-C that the process sends to itself at the moment when a module is first asked for.
PRESSED = """
import os, sys
moment = sys.argv.pop(1)
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), 2)
sys.meta_path.insert(0, Press())
from priorveil.__main__ import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize(
    ("moment", "arguments"),
    [
        ("click", ["--help"]),
        ("difflib", ["--version"]),
        ("priorveil.cli.design", ["design", "p.csv", "--epsilon", "1"]),
        ("numpy", ["design", "p.csv", "--epsilon", "1"]),
        ("numpy._core.multiarray", ["design", "p.csv", "--epsilon", "1"]),
        ("scipy", ["design", "p.csv", "--epsilon", "1"]),
        ("flint", ["design", "p.csv", "--epsilon", "1"]),
        ("rich", ["audit", "q.csv", "p.csv"]),
        ("priorveil.studies.simulate", ["simulate", "p.csv", "--runs", "0"]),
        ("starlette", ["serve", "--store", "x.db"]),
    ],
)
def test_ctrl_c_while_libraries_load_is_quiet(moment: str, arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("0.5,0.5\n" * 3)
    (tmp_path / "p.csv").write_text("a,0.5\nb,0.3\nc,0.2\n")
    command = [sys.executable, "-c", PRESSED, moment, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "stopped")


def test_a_ctrl_c_that_is_to_be_ignored_is_ignored() -> None:
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + PRESSED
    command = [sys.executable, "-c", code, "click", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_as_a_module(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("0.9,0.1\n0.1,0.9\n")
    (tmp_path / "p.csv").write_text("0.5\n0.5\n")
    command = [sys.executable, "-m", "priorveil", "audit", tmp_path / "q.csv", tmp_path / "p.csv"]
    done = subprocess.run([*map(str, command), "--epsilon", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "does not hold" in done.stdout


def test_benchmarks_are_listed_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src" / "priorveil").mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "quick.py").write_text(
        '"""How quick it is."""\nimport sys\nsys.exit(3 if "--slow" in sys.argv else 0)\n'
    )
    (tmp_path / "benchmarks" / "_shared.py").write_text("raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    status, out, _ = run("bench")
    assert status == 0 and "How quick it is." in out and "_shared" not in out
    assert run("bench", "quick")[0] == 0
    assert run("bench", "quick", "--slow")[0] == 3
    assert run("bench", "--all")[0] == 0
    assert "there are quick" in refused("bench", "slow")


def test_no_benchmarks_outside_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("priorveil.cli.bench.__file__", str(tmp_path / "a" / "b" / "c" / "bench.py"))
    assert "part of a checkout" in refused("bench")


# Root may write anywhere, unless it gives these two capabilities up before the program starts.
LOCKED = """
import ctypes, os, sys
if sys.argv[1] == "give up":
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    os.execv(sys.executable, [sys.executable, sys.argv[0], "run"])
from contextlib import redirect_stderr, redirect_stdout
import io, json, priorveil as pv, priorveil.cli
from priorveil.tables import privatize_table
plan = pv.Plan.load("plan.json")
for task in (lambda: plan.save("locked/x"), lambda: privatize_table("people.csv", plan, "a", "locked/x.csv")):
    try:
        task()
    except pv.errors.InvalidInput as error:
        print(error)
for arguments in json.load(open("arguments.json")):
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = priorveil.cli.run(arguments)
    print(status, out.getvalue() + err.getvalue(), end="")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
def test_a_folder_that_cannot_be_written_to_is_found_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    (tmp_path / "script.py").write_text(LOCKED)
    (tmp_path / "people.csv").write_text("a\nyes\nno\n")
    (tmp_path / "prior.csv").write_text("yes,0.5\nno,0.5\n")
    pv.design(pv.Prior({"yes": 0.5, "no": 0.5}), 1.0, pv.Histogram()).save(tmp_path / "plan.json")
    counted = ["estimate", "plan.json", "nothing-is-read.csv", "--json"]
    arguments = [
        ["design", "prior.csv", "--epsilon", "1", "-o", "locked/x.json"],
        ["design", "prior.csv", "--epsilon", "1", "--plot", "locked/x.png"],
        ["privatize", "plan.json", "people.csv", "--column", "a", "-o", "locked/x.csv"],
        *(
            [*counted, option, f"locked/x{end}"]
            for option, end in (("--plot", ".svg"), ("--refused", ".csv"))
        ),
        ["reproduce", "1", "--quick", "--out", "locked"],
        ["reproduce", "1", "--quick", "--out", "locked/a/b"],
        ["serve", "--store", "locked/x.db"],
    ]
    (tmp_path / "arguments.json").write_text(json.dumps(arguments))
    done = subprocess.run(
        [sys.executable, "script.py", "give up"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 2 + len(arguments)
    refusals = (
        "locked cannot be written to",
        "'locked' is not writable",
        "locked/a: Permission denied",
        "(Permission denied): let the curator's user write to the file and its folder",
    )
    assert [line for line in lines if not any(words in line for words in refusals)] == []
    assert all(line.startswith("2 error: ") for line in lines[2:])
    assert list((tmp_path / "locked").iterdir()) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal_of_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Except for the commands of examples, which people copy."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(name, "--help")[1].splitlines()
    assert [line for line in lines if len(line) > 80 and "priorveil" not in line] == []


class ClosedPipe(io.StringIO):
    """Standard output whose reader has ended."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_closed_pipe_is_not_the_answer_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("channel.csv").write_text("0.5,0.5\n0.5,0.5\n")
    Path("prior.csv").write_text("0.5\n0.5\n")
    task = ["audit", "channel.csv", "prior.csv", "--epsilon", "1"]
    assert run(*task)[0] == 0
    read_end, write_end = os.pipe()
    os.close(read_end)
    ended = subprocess.run(
        [sys.executable, "-m", "priorveil", *task], stdout=write_end, stderr=subprocess.PIPE, text=True
    )
    os.close(write_end)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize(
    "task",
    [
        ["design", "prior.csv", "--epsilon", "1"],
        ["design", "prior.csv", "--epsilon", "1", "-o", "-"],
        ["inspect", "plan.json"],
        ["estimate", "plan.json", "reports.csv", "--assume-plan"],
        ["simulate", "prior.csv", "--epsilon", "1", "--runs", "0", "--method", "best"],
    ],
)
def test_a_picture_is_saved_before_anything_is_printed(
    task: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    Path("prior.csv").write_text("a,0.5\nb,0.5\n")
    pv.design(pv.Prior({"a": 0.5, "b": 0.5}), 1.0, pv.Histogram()).save("plan.json")
    Path("reports.csv").write_text("report\n0\n1\n")
    with redirect_stdout(ClosedPipe()), pytest.raises(SystemExit):
        main([*task, "--plot", "picture.png"])
    assert Path("picture.png").read_bytes().startswith(b"\x89PNG")
