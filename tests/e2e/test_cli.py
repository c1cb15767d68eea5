"""The commands as users call them, in processes of their own."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from tests.network import open_to_others, small
from vfgnn.cli.main import app, main
from vfgnn.errors import ExitCode, VfgnnError
from vfgnn.lab.local_files import fresh_folder

ROOT = Path(__file__).parents[2]


def vfgnn(*arguments, cwd=None, **environment):
    command = [str(Path(sys.executable).parent / "vfgnn"), *arguments]
    variables = {key: value for key, value in os.environ.items() if key != "VFGNN_DATA"}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, timeout=240, env={**variables, **environment}
    )


def test_help_answers_within_a_second():
    best = 9.0
    for _ in range(3):  # the first call may have to compile
        began = time.perf_counter()
        done = vfgnn("--help")
        best = min(best, time.perf_counter() - began)
    assert done.returncode == 0
    assert best < 1


def commands(group, path=()):
    """Every command there is, with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_all_commands_are_found():
    assert {("run",), ("keys", "new"), ("reproduce", "compare"), ("bench", "serve")} <= COMMANDS.keys()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_an_example(words):
    assert f"Example: `vfgnn {' '.join(words)}" in COMMANDS[words].help


def test_help_shows_the_example():
    done = vfgnn("keys", "new", "--help", COLUMNS="200")
    assert done.returncode == 0
    assert "Example: vfgnn keys new" in done.stdout


def test_version():
    assert vfgnn("--version").stdout.strip() == "0.2.0"


def test_simulate_writes_what_it_prints(tmp_path):
    out = tmp_path / "result.json"
    done = vfgnn("simulate", "--set", "epochs=4", "--set", "dim=16", "--seed", "3", "--json", str(out))
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert {
        "test_accuracy", "val_accuracy", "isolated", "joint", "epochs", "seconds_per_epoch", "bytes_per_epoch",
        "revealed_dimensions",
    } <= result.keys()  # fmt: skip
    assert len(result["isolated"]) == 2
    assert (result["epochs"], result["revealed_dimensions"]) == (4, 5 * 16)
    assert f"{result['test_accuracy']:.3f}" in done.stdout
    assert f"{result['joint']:.3f}" in done.stdout
    assert "Warning" not in done.stderr


@pytest.mark.parametrize("where", [[], pytest.param(["--processes"], marks=pytest.mark.slow)])
def test_bench_epoch(tmp_path, where):
    out, temporary = tmp_path / "epoch.json", tmp_path / "temporary"
    temporary.mkdir()
    arguments = ["--dataset", "citeseer", "--set", "dim=8", "--set", "layers=2", "--json", str(out), *where]
    done = vfgnn("bench", "epoch", *arguments, TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert list(result) == [
        "dataset", "holders", "preset", "processes", "joint_layer", "central_s", "federated_s", "ratio",
        "frozen_s", "frozen_ratio", "bytes_per_epoch", "frozen_bytes_per_epoch",
    ]  # fmt: skip
    assert list(temporary.iterdir()) == []
    assert result["ratio"] == pytest.approx(result["federated_s"] / result["central_s"])


BAD = {
    "unknown dataset": (["simulate", "--dataset", "corra"], "cora, citeseer, pubmed, arxiv"),
    "unknown preset": (["simulate", "--preset", "bset"], "best, paper"),
    "unknown key": (["simulate", "--set", "laeyrs=2"], "laeyrs"),
    "unreadable setting": (["simulate", "--set", "layers"], "--set key=value"),
    "value out of range": (["simulate", "--set", "layers=0"], "layers"),
    "value of the wrong kind": (["simulate", "--set", "dim=wide"], "dim"),
    "proportions that do not add up": (["simulate", "--proportions", "0.5,0.6"], "add up"),
    "proportions for others": (["simulate", "--proportions", "0.2,0.3,0.5"], "2 holders"),
    "proportions in words": (["simulate", "--proportions", "half,half"], "0.7,0.3"),
    "zero holders": (["simulate", "--holders", "0"], "holders"),
    "unknown edge split": (["simulate", "--edge-split", "some"], "undirected or directed"),
    "unknown device": (["simulate", "--device", "tpu"], "cpu or cuda"),
    "module that is not there": (["simulate", "--module", "nowhere:Gnn"], "package.module:Class"),
    "missing data": (["simulate", "--dataset", "cora"], "VFGNN_DATA"),
    "missing folder": (["simulate", "--dataset", "cora", "--data-dir", "/nowhere"], "no such data folder"),
    "unknown dataset in a table": (["reproduce", "compare", "--datasets", "cora,corra"], "corra"),
    "unknown row": (["reproduce", "compare", "--models", "VFGNN_X"], "VFGNN_best"),
    "no federation file": (["run", "federation.toml", "party.toml"], "no federation file"),
    "unknown kind of log": (["run", "federation.toml", "party.toml", "--log", "xml"], "text or json"),
    "a name that no certificate can have": (["keys", "new", "a b"], "letters, digits"),
    "no certificate": (["keys", "show", "nowhere.pem"], "no certificate"),
    "too few holders for a demo": (["demo", "--holders", "0"], "holders"),
    "a demo by one protocol": (["demo", "--set", "protocol=sealed"], "no --set protocol"),
    "unknown dataset in a benchmark": (["bench", "epoch", "--dataset", "x"], "cora, citeseer"),
}


@pytest.fixture
def call(monkeypatch, tmp_path, capsys):
    """A command in this process, with no data, no cache and no network."""
    monkeypatch.delenv("VFGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["vfgnn", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr()

    return run


class OwnError(VfgnnError):
    exit_code = ExitCode.REFUSED


def test_a_run_that_would_reveal_too_much_ends_with_4():
    done = vfgnn("simulate", "--set", "accept_h0_leak=false", "--set", "joint_layer_epochs=200", "--set", "epochs=200")
    assert done.returncode == ExitCode.REFUSED
    assert "the joint layer would reveal too much" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_of_ours_ends_with_the_code_of_its_class(call, monkeypatch):
    def fail(*_, **__):
        raise OwnError("no", hint="nothing")

    monkeypatch.setattr("vfgnn.transport.certificates.load", fail)
    code, printed = call("keys", "show", "x.pem")
    assert (code, printed.err) == (ExitCode.REFUSED, "error: no\n  to do:    nothing\n")


def test_an_unexpected_error_ends_with_1_and_says_that_it_is_ours(call, monkeypatch):
    def fail(*_, **__):
        raise KeyError("x")

    monkeypatch.setattr("vfgnn.transport.certificates.load", fail)
    code, printed = call("keys", "show", "x.pem")
    assert code == ExitCode.OUR_FAULT
    assert printed.err.startswith("Traceback")
    *_, last, to_do = printed.err.splitlines()
    assert last == "error: vfgnn itself failed (KeyError); this is our fault"
    assert "report it" in to_do


def test_help_tells_the_exit_codes():
    printed = " ".join(vfgnn("--help", COLUMNS="200").stdout.split())
    for code in ExitCode:
        assert f"{code.value}: {code.meaning}" in printed


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_an_error_and_exit_code_2(case, call, tmp_path):
    arguments, expected = BAD[case]
    code, printed = call(*arguments)
    assert code == 2
    assert "Traceback" not in printed.err
    assert expected in printed.err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_altered_data_file_is_refused(tmp_path):
    raw = tmp_path / "planetoid" / "Cora" / "raw"
    raw.mkdir(parents=True)
    (raw / "ind.cora.allx").write_bytes(b"altered")
    done = vfgnn("simulate", "--dataset", "cora", "--data-dir", str(tmp_path))
    assert done.returncode == 2
    assert "truncated or altered" in done.stderr


@pytest.mark.slow
def test_compare_is_resumable(tmp_path):
    """Settings are small here: what matters is that the second call trains nothing."""
    arguments = [
        "reproduce",
        "compare",
        "--datasets",
        "citeseer",
        "--seeds",
        "1",
        "--models",
        "VFGNN_best,GraphSAGE_A+B",
    ]
    arguments += ["--json", "rows.json", "--markdown", "rows.md", "--figure", "rows.png", "--run-dir", "kept"]
    first = vfgnn(*arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "kept").iterdir()}
    content = json.loads((tmp_path / "rows.json").read_text())
    assert [row["model"] for row in content["rows"]] == ["VFGNN_best", "GraphSAGE_A+B"]
    assert list(content["rows"][0]) == [
        "table", "dataset", "model", "preset", "holders", "proportion", "epsilon", "mean", "std", "n", "paper",
        "edge_split",
    ]  # fmt: skip
    assert vfgnn(*arguments, cwd=tmp_path).returncode == 0
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "kept").iterdir()} == kept
    assert json.loads((tmp_path / "rows.json").read_text()) == content
    assert (tmp_path / "rows.png").stat().st_size > 1000
    assert "CiteSeer" in (tmp_path / "rows.md").read_text()


def test_demo_ends_with_one_table_and_leaves_both_folders(tmp_path):
    few = ("--set", "epochs=10", "--set", "sealed.steps=2", "--set", "sealed.hops=2")
    done = vfgnn("demo", *few, "--json", "rows.json", cwd=tmp_path, COLUMNS="90")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 90
    folder = tmp_path / "vfgnn-demo"
    assert open_to_others(folder) == []
    assert {path.name for path in folder.iterdir()} == {"split", "sealed"}
    for protocol, parties in (("split", {"server", "dealer", "A", "B"}), ("sealed", {"dealer", "A", "B"})):
        home = folder / protocol
        assert {path.name for path in home.iterdir()} == parties | {"federation.toml", "report.html"}
        assert f"vfgnn-demo/{protocol}/report.html" in done.stdout
        # Nobody but A has labels or a metric, and nobody has another's key.
        for name in parties - {"A"}:
            assert not list((home / name).rglob("labels*")) + list((home / name).rglob("metrics*"))
            assert [path.name for path in (home / name).glob("*.key.pem")] == [f"{name}.key.pem"]
    _the_table_says_what_the_records_say(done.stdout, json.loads((tmp_path / "rows.json").read_text()), folder)


def _the_table_says_what_the_records_say(said, written, folder):
    rows = {row["model"]: row for row in written["rows"]}
    assert list(rows) == ["A alone", "B alone", "federated (paper)", "sealed", "pooled"]
    for model, row in rows.items():
        assert set(row) == {"model", "test", "opened"}
        assert re.search(rf"{re.escape(model)} +│ {row['test']:.3f} ", said)
    about = {name: json.loads((folder / name / "A" / "run" / "run.json").read_text()) for name in ("split", "sealed")}
    assert rows["federated (paper)"]["test"] == about["split"]["outcome"]["test_accuracy"]
    assert rows["sealed"]["test"] == about["sealed"]["outcome"]["test_accuracy"]
    share, opened = about["split"]["leak_meter"]["share"], about["sealed"]["opened"]
    assert f"{share:.0%}" in rows["federated (paper)"]["opened"]
    assert f"{opened['rows'] - opened['validation_rows']:,} nodes" in rows["sealed"]["opened"]
    assert f"{opened['scalars']} inner products" in rows["sealed"]["opened"]
    assert rows["A alone"]["opened"] == "nothing"
    assert rows["B alone"]["opened"] == "B: 620 labels of A"


def test_demo_says_what_it_does_before_anything_large_is_loaded():
    """So the first line does not wait for torch. Without torch and numpy the command ends at its first use of them."""
    without = "import sys; sys.modules |= dict.fromkeys(('torch', 'numpy')); from vfgnn.cli.main import app"
    done = subprocess.run(
        [sys.executable, "-c", f"{without}; app(['demo'])"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "citeseer, 2 holders: first the paper's protocol, then the sealed one\n"
    assert "ModuleNotFoundError" in done.stderr


def test_demo_refuses_a_folder_with_something_else(call, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    code, said = call("demo", "--folder", "mine")
    assert code == ExitCode.BAD_INPUT
    assert "name another with --folder" in said.err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"


def test_a_folder_of_earlier_federations_is_made_anew(tmp_path):
    """Also one whose demo was ended before both were written."""
    for name in ("split", "sealed"):
        (tmp_path / "demo" / name).mkdir(parents=True)
    (tmp_path / "demo" / "split" / "federation.toml").write_text("")
    assert list(fresh_folder(tmp_path / "demo").iterdir()) == []
    (tmp_path / "demo" / "federation.toml").write_text("")
    (tmp_path / "demo" / "A").mkdir()
    assert list(fresh_folder(tmp_path / "demo").iterdir()) == []
    (tmp_path / "demo" / "other" / "thesis").mkdir(parents=True)
    with pytest.raises(VfgnnError, match="something else"):
        fresh_folder(tmp_path / "demo")


def test_keys_are_made_once_and_shown(tmp_path):
    made = vfgnn("keys", "new", "bank", "--days", "30", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    key = tmp_path / "bank.key.pem"
    assert key.stat().st_mode & 0o777 == 0o600
    shown = vfgnn("keys", "show", "bank.certificate.pem", cwd=tmp_path)
    fingerprint = made.stdout.split()[-1]
    assert f"fingerprint  {fingerprint}" in shown.stdout
    assert "name         bank" in shown.stdout
    before = key.read_bytes()
    again = vfgnn("keys", "new", "bank", cwd=tmp_path)
    assert again.returncode == 2
    assert key.read_bytes() == before
    assert "BEGIN" not in made.stdout + shown.stdout


def test_a_key_with_a_passphrase_is_encrypted_on_disk(tmp_path):
    command = [str(Path(sys.executable).parent / "vfgnn"), "keys", "new", "bank", "--passphrase"]
    done = subprocess.run(command, input="secret\nsecret\n", capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "ENCRYPTED PRIVATE KEY" in (tmp_path / "bank.key.pem").read_text()


def test_doctor_says_what_to_do_and_whether_to_look_at_home(tmp_path):
    local = small(tmp_path / "federation", initial_embedding="individual")
    doctor = ("doctor", str(local.federation_toml), str(local.party_toml("B")))
    done = vfgnn(*doctor, COLUMNS="160")
    assert done.returncode == ExitCode.PEER
    assert "nobody answers at" in done.stdout
    assert "2 faults to mend" in done.stdout
    assert "Traceback" not in done.stderr
    (local.folder / "B" / "data" / "holding.safetensors").unlink()
    assert vfgnn(*doctor).returncode == ExitCode.BAD_INPUT  # peers are at fault too, but home comes first


def test_quickstart_runs():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "quickstart.py")], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    accuracy = {line.rsplit(" test accuracy ")[0].strip(): float(line.split()[-1]) for line in done.stdout.splitlines()}
    assert accuracy["federated"] > max(value for name, value in accuracy.items() if name.endswith("alone"))
    assert len((ROOT / "examples" / "quickstart.py").read_text().splitlines()) < 40
