"""The lock files say what pyproject.toml and constraints.txt ask for, and pip holds files against them."""

import hashlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools import lock

ROOT = Path(__file__).parents[2]
PINS = lock.read_pins((ROOT / "constraints.txt").read_text())


def locked(build):
    """Package, version, hashes."""
    text = (ROOT / f"requirements-{build}.lock").read_text().replace("\\\n", "")
    lines = re.findall(r"^(\S+)==(\S+)((?: ; .*?)?)((?: +--hash=sha256:[0-9a-f]{64})+)$", text, flags=re.M)
    assert len(lines) == text.count("==") - text.count("platform_system ==")
    return {name: (version, hashes.split()) for name, version, _, hashes in lines}


@pytest.mark.parametrize("build", lock.BUILDS)
def test_a_lock_has_every_requirement_in_its_pinned_version_with_hashes(build):
    found = locked(build)
    for wanted in lock.roots_of(tomllib.loads((ROOT / "pyproject.toml").read_text())):
        name = canonicalize_name(wanted.name)
        assert name in found, f"{name} is not locked: run python tools/lock.py"
        assert found[name][0] in wanted.specifier
    for name, (version, hashes) in found.items():
        assert PINS[name] == version and hashes, f"{name}: run python tools/lock.py"


@pytest.mark.parametrize("build", lock.BUILDS)
@pytest.mark.parametrize("python", lock.PYTHONS)
def test_a_lock_has_whatever_its_packages_require(build, python):
    """By the metadata of what is installed here."""
    found = locked(build)
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    for name in found:
        try:
            lines = requires(name) or []
        except PackageNotFoundError:  # of another system, or of the CUDA build
            continue
        for wanted in map(Requirement, lines):
            if wanted.marker is None or wanted.marker.evaluate(environment):
                assert canonicalize_name(wanted.name) in found, f"{name} requires {wanted}"


def test_the_builds_of_torch_share_no_file():
    cpu, cuda = locked("cpu"), locked("cuda")
    assert not set(cpu["torch"][1]) & set(cuda["torch"][1])
    assert "nvidia-cublas" in cuda and not [name for name in cpu if name.startswith(("nvidia", "cuda", "triton"))]


def tiny_wheel(folder, name, version="1.0", requires=(), content=b""):
    """A wheel with one module."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    with ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", content)
        about = f"{name}-{version}.dist-info"
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index on disk with three packages; one of them is for macOS alone."""
    folder = tmp_path / "index"
    needs = {"first": ["second>=1", "third; platform_system == 'Darwin'", "fourth; extra == 'more'"]}
    for name in ("first", "second", "third"):
        (folder / name).mkdir(parents=True)
        wheels = [tiny_wheel(folder / name, name, version, needs.get(name, ())) for version in ("1.0", "2.0")]
        links = [f'<a href="{one.name}#sha256={hashlib.sha256(one.read_bytes()).hexdigest()}">x</a>' for one in wheels]
        (folder / name / "index.html").write_text("".join(links))
    monkeypatch.setattr(lock, "indexes", lambda: (folder.as_uri(),))
    monkeypatch.setattr(lock, "configured", lambda key: ())
    lock.wheels_of.cache_clear()
    yield folder
    lock.wheels_of.cache_clear()


def test_the_tool_follows_requirements_and_names_what_is_not_pinned(index):
    first = [Requirement("first")]
    with pytest.raises(SystemExit, match=r"(?s)not pinned yet.*second==2.0\nthird==2.0"):
        lock.write_lock("cpu", first, {"first": "1.0"})
    with pytest.raises(SystemExit, match=r"second==0.9, and second>=1 is required"):
        lock.write_lock("cpu", first, {"first": "1.0", "second": "0.9"})
    text = lock.write_lock("cpu", first, {"first": "1.0", "second": "1.0", "third": "1.0"})
    assert re.findall(r"^(\w+)==(\S+)(.*?) \\$", text, flags=re.M) == [
        ("first", "1.0", ""), ("second", "1.0", ""), ("third", "1.0", ' ; platform_system == "Darwin"'),
    ]  # fmt: skip
    digest = hashlib.sha256((index / "second" / "second-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    assert f"--hash=sha256:{digest}" in text


@pytest.mark.slow
def test_pip_refuses_a_file_that_is_not_the_locked_one(index, tmp_path):
    made = lock.write_lock("cuda", [Requirement("second")], {"second": "1.0"})
    (tmp_path / "good.lock").write_text(made)
    (tmp_path / "changed.lock").write_text(
        re.sub("sha256:.", lambda found: "sha256:" + "10"[found[0][-1] == "1"], made)
    )
    (tmp_path / "without.lock").write_text("second==1.0\n")

    def install(name):
        where = ["--find-links", index / "second", "--target", tmp_path / name, "-r", tmp_path / f"{name}.lock"]
        command = [sys.executable, "-m", "pip", "install", "--isolated", "--no-index", "--require-hashes", *where]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    good, changed, without = install("good"), install("changed"), install("without")
    assert good.returncode == 0 and (tmp_path / "good" / "second.py").is_file(), good.stderr
    assert changed.returncode != 0 and "DO NOT MATCH THE HASHES" in changed.stderr
    assert without.returncode != 0 and "Hashes are required" in without.stderr
