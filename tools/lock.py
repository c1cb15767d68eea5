"""The lock files: every package that a machine needs, in its pinned version, with the SHA-256 of each of its wheels.

    python tools/lock.py    # writes requirements-cpu.lock and requirements-cuda.lock

From pyproject.toml on it follows what each package requires, on all Pythons and systems below; versions are those of
constraints.txt. A package that is not pinned there is named, with the newest version that fits: add that line and run
it again. Packages are looked for where pip looks, by its own configuration; nothing is installed, and of packages on an
index only their metadata is fetched. Wheels only: a source package would be built by tools that no lock has.
"""

import hashlib
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import unquote, urljoin
from urllib.request import urlopen
from zipfile import ZipFile

from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
SYSTEMS = {"Linux": ("linux", "x86_64"), "Darwin": ("darwin", "arm64")}
BUILDS = {"cpu": ("Linux", "Darwin"), "cuda": ("Linux",)}  # of torch, and where it runs
EDITABLE = "editables"  # what hatchling wants beyond its own requirements to install this project as it stands
HEAD = """# Made by tools/lock.py from pyproject.toml and constraints.txt; change those, and run it again.
# pip install --require-hashes -r {name}, then pip install --no-deps --no-build-isolation --editable .
--only-binary :all:
"""


@dataclass(frozen=True)
class Wheel:
    """A file of one version of a package."""

    version: Version
    tags: frozenset[Tag]
    url: str
    digest: str  # as the index has it; of a file on this disk it is computed

    @property
    def sha256(self) -> str:
        """Of its content."""
        return self.digest or hashlib.sha256(_fetch(self.url)).hexdigest()

    @property
    def usable(self) -> bool:
        """Whether a Python and a system of ours could take it."""
        return any(_usable(tag) for tag in self.tags)


def _usable(tag: Tag) -> bool:
    python = re.fullmatch(r"cp3(\d+)", tag.interpreter)
    new = int(python[1]) >= 11 if python else tag.interpreter == "py3"
    return (new or tag.abi == "abi3") and bool(re.match("any|linux|manylinux|musllinux|macosx", tag.platform))


class Links(HTMLParser):
    """The addresses on an index's page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        self.found += [value for key, value in attrs if tag == "a" and key == "href" and value]


@cache
def configured(key: str) -> tuple[str, ...]:
    """What pip's files and environment say of `key`."""
    done = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    found = re.findall(rf"^\S*\.{key}='(.*)'$", done.stdout, flags=re.M)
    return tuple(dict.fromkeys(part for value in found for part in value.replace(r"\n", " ").split()))


def indexes() -> tuple[str, ...]:
    """The one that pip asks by default, and the others."""
    from pip._internal.models.index import PyPI  # pip alone knows its address

    return (*(configured("index-url") or (PyPI.simple_url,)), *configured("extra-index-url"))


def _fetch(url: str) -> bytes:
    with urlopen(url, timeout=60) as answer:  # noqa: S310 (an index that pip is configured with)
        content: bytes = answer.read()
    return content


@cache
def wheels_of(name: str) -> tuple[Wheel, ...]:
    """All that pip could find of a package, on any index and in any folder; each file once."""
    links = [*_on_indexes(name), *_in_folders()]
    found = {link.partition("#")[0].rpartition("/")[2]: _wheel(name, link) for link in links}
    return tuple(wheel for wheel in found.values() if wheel is not None)


def _on_indexes(name: str) -> Iterator[str]:
    for index in indexes():
        page = f"{index.rstrip('/')}/{name}/" + ("index.html" if index.startswith("file:") else "")
        try:
            links = Links(_fetch(page).decode()).found
        except URLError:  # not on this one
            continue
        yield from (urljoin(page, link) for link in links)


def _in_folders() -> Iterator[str]:
    for folder in configured("find-links"):
        yield from (path.as_uri() for path in Path(folder.removeprefix("file://")).glob("*.whl"))


def _wheel(name: str, link: str) -> Wheel | None:
    url, _, digest = link.partition("#sha256=")
    try:
        project, version, _, tags = parse_wheel_filename(unquote(url.rpartition("/")[2]))
    except (InvalidWheelFilename, InvalidVersion):
        return None
    return Wheel(version, tags, url, digest) if project == name else None


@cache
def requirements_of(wheel: Wheel) -> tuple[Requirement, ...]:
    """What its metadata asks for; an index has it beside the wheel, unless the wheel is years old."""
    try:
        text = _fetch(f"{wheel.url}.metadata")
    except URLError:
        with ZipFile(BytesIO(_fetch(wheel.url))) as content:
            name = next(name for name in content.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
            text = content.read(name)
    return tuple(Requirement(line) for line in parse_email(text)[0].get("requires_dist", []))


def chosen(name: str, version: str, build: str) -> list[Wheel]:
    """The wheels of a version. Of torch, those of one build: on macOS the index has the CPU's, elsewhere CUDA's."""
    found = [wheel for wheel in wheels_of(name) if Version(wheel.version.public) == Version(version) and wheel.usable]
    if name == "torch":
        cpu = {wheel for wheel in found if wheel.version.local == "cpu"}
        mac = {wheel for wheel in found if any(tag.platform.startswith("macosx") for tag in wheel.tags)}
        found = [wheel for wheel in found if (wheel in cpu | mac) == (build == "cpu")]
    if not found:
        raise SystemExit(f"{name}=={version}: no wheel of it ({build}) is to be found where pip looks")
    return sorted(found, key=lambda wheel: not any("linux" in tag.platform for tag in wheel.tags))


class Closure:
    """All packages that some requirements lead to, and on which systems each is needed."""

    def __init__(self, build: str, pins: Mapping[str, str]) -> None:
        self._build, self.pins, self.unpinned = build, dict(pins), dict[str, str]()
        self.systems: dict[str, set[str]] = defaultdict(set)
        self._asked: dict[str, SpecifierSet] = defaultdict(SpecifierSet)
        self._requires: dict[str, tuple[Requirement, ...]] = {}

    def follow(self, roots: Iterable[Requirement], system: str, python: str) -> None:
        """Everything that is needed there."""
        platform, machine = SYSTEMS[system]
        environment = {"platform_system": system, "sys_platform": platform, "platform_machine": machine}
        environment |= {"python_version": python, "python_full_version": f"{python}.0", "os_name": "posix"}
        todo, seen = list(roots), set[tuple[str, str]]()
        while todo:
            wanted = todo.pop()
            name = canonicalize_name(wanted.name)
            self._check(name, wanted)
            self.systems[name].add(system)
            for extra in {"", *wanted.extras} - {one for known, one in seen if known == name}:
                seen.add((name, extra))
                more = self._requires[name]
                todo += [
                    one for one in more if one.marker is None or one.marker.evaluate(environment | {"extra": extra})
                ]

    def _check(self, name: str, wanted: Requirement) -> None:
        """It is pinned, the pin is allowed, and what it requires is known."""
        asked = self._asked[name] = self._asked[name] & wanted.specifier
        if name not in self.pins or (name in self.unpinned and self.pins[name] not in asked):
            fitting = [wheel.version for wheel in wheels_of(name) if wheel.version in asked and wheel.usable]
            if not fitting:
                raise SystemExit(f"{name}{asked}: nothing that fits is to be found where pip looks")
            self.pins[name] = self.unpinned[name] = max(fitting).public
            self._requires.pop(name, None)
        if not asked.contains(self.pins[name], prereleases=True):
            raise SystemExit(f"constraints.txt has {name}=={self.pins[name]}, and {name}{asked} is required")
        if name not in self._requires:
            self._requires[name] = requirements_of(chosen(name, self.pins[name], self._build)[0])


def read_pins(text: str) -> dict[str, str]:
    """constraints.txt."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", text, flags=re.M)
    return {canonicalize_name(name): version for name, version in found}


def roots_of(project: Mapping[str, Any]) -> list[Requirement]:
    """What pyproject.toml asks for: to run, with all extras, and to be installed."""
    extras = project["project"]["optional-dependencies"].values()
    lines = (*project["project"]["dependencies"], *chain(*extras), *project["build-system"]["requires"], EDITABLE)
    return [Requirement(line) for line in lines]


def write_lock(build: str, roots: list[Requirement], pins: Mapping[str, str]) -> str:
    """The whole file."""
    closure = Closure(build, pins)
    for system in BUILDS[build]:
        for python in PYTHONS:
            closure.follow(roots, system, python)
    if closure.unpinned:
        lines = "\n".join(f"{name}=={version}" for name, version in sorted(closure.unpinned.items()))
        raise SystemExit(f"not pinned yet; add to constraints.txt what you have looked at of:\n{lines}")
    name = f"requirements-{build}.lock"
    return HEAD.format(name=name) + "".join(_entry(closure, name, build) for name in sorted(closure.systems))


def _entry(closure: Closure, name: str, build: str) -> str:
    systems, version = closure.systems[name], closure.pins[name]
    only = "" if systems == set(BUILDS[build]) else f' ; platform_system == "{min(systems)}"'
    hashes = sorted({wheel.sha256 for wheel in chosen(name, version, build)})
    return f"{name}=={version}{only}" + "".join(f" \\\n    --hash=sha256:{one}" for one in hashes) + "\n"


def main() -> None:
    """Both files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pins = read_pins((ROOT / "constraints.txt").read_text())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: requirements_of(chosen(name, pins[name], "cuda")[0]), pins))  # all at once
    for build in BUILDS:
        text = write_lock(build, roots_of(project), pins)
        (ROOT / f"requirements-{build}.lock").write_text(text)
        print(f"requirements-{build}.lock: {text.count('==')} packages, {text.count('--hash')} wheels")


if __name__ == "__main__":
    main()
