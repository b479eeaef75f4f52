"""Build the package and try it as a stranger would: in empty environments, without the source tree.

Run by ``make test-package``: the build is repeatable, also from the source archive, the archives hold what they should and nothing
else, the core and each extra alone can be installed and used, with the newest versions and with the lowest that the ranges of the
dependencies allow. The size of the core is written to ``docs/explanation/size.md``, and may not grow beyond a limit.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
TOOLS = Path(sys.executable).parent

# What an extra is for, in one line that fails without it. A framework's extra is tried by importing its adapter.
USES = {
    "postgres": "import sessiontree.stores.postgres.store",
    "tokens": "import sessiontree as st; assert st.exact_counter()('hello world') == 2",
    "openai": "import openai",
    "anthropic": "import anthropic",
    "otel": "import sessiontree.observe.otel",
    "web": "import sessiontree.web.app",
    "all": "import sessiontree.stores.postgres.store, sessiontree.observe.otel, sessiontree.web.app",
}
CORE = """
import importlib.metadata, pathlib, sys, tempfile
import sessiontree as st
folder = pathlib.Path(tempfile.mkdtemp())
for url in ("memory:", f"sqlite:///{folder / 'a.db'}", f"jsonl:///{folder / 'b'}"):
    with st.open(url) as journal:
        chat = journal.open_thread("demo", create=True)
        chat.append(st.user("hello"))
        assert [hit.thread_id for hit in journal.search("hello").hits] == ["demo"], url
package = importlib.metadata.distribution("sessiontree")
assert package.version == st.__version__
files = {str(file) for file in package.files or ()}
assert "sessiontree/py.typed" in files
assert any(file.endswith("licenses/LICENSE") for file in files)
print(len(list(importlib.metadata.distributions())))
"""
# The processor's time in milliseconds for the import alone, and until a store is open.
IMPORT_TIME = """
import time
start = time.process_time()
import sessiontree as st
imported = time.process_time()
with st.open("a.db"):
    print(f"{(imported - start) * 1e3:.0f} {(time.process_time() - start) * 1e3:.0f}")
"""
MOST_PACKAGES, MOST_BYTES = 12, 20_000_000
TEST_TOOLS = ("hypothesis", "pexpect", "pytest", "pytest-xdist")
CONTRACT = [f"tests/contract/test_{store}.py" for store in ("memory", "sqlite", "jsonl")] + [
    "tests/unit/test_context.py"
]
STATIC = (".css", ".js", ".svg", ".json", ".typed", ".py", ".sql", ".html")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def build(target: Path) -> tuple[Path, Path]:
    """Build both archives twice and return them; the two builds are the same bytes."""
    for folder in (target, target / "again"):
        build_into(folder, ROOT)
    archives = sorted(path for path in target.iterdir() if path.is_file())
    for archive in archives:
        assert _hash(archive) == _hash(target / "again" / archive.name), f"{archive.name} differs from build to build"
    source, wheel = sorted(archives, key=lambda path: path.suffix == ".whl")
    run(TOOLS / "twine", "check", "--strict", source, wheel, cwd=target)
    return source, wheel


def build_into(folder: Path, project: Path, *options: str) -> None:
    command: list[str | Path] = [TOOLS / "python", "-m", "hatchling", "build", "-d", folder, *options]
    run(*command, cwd=project, SOURCE_DATE_EPOCH="1577836800")


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_contents(source: Path, wheel: Path) -> None:
    """The wheel has the package and its licence; the source archive has no environment, no cache and no data of tests."""
    for name in zipfile.ZipFile(wheel).namelist():
        assert name.startswith(("sessiontree/", "sessiontree-")), name
        assert "dist-info" in name or name.endswith(STATIC), name
    with tarfile.open(source) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert not [name for name in names if ".venv" in name or "__pycache__" in name]
    assert {"pyproject.toml", "LICENSE", "README.md", "src/sessiontree/py.typed"} <= set(names)


def check_source(source: Path, wheel: Path, folder: Path) -> None:
    """The source archive has all that a build needs: the wheel that it builds is the same."""
    with tarfile.open(source) as archive:
        archive.extractall(folder / "source", filter="data")
    (unpacked,) = (folder / "source").iterdir()
    build_into(folder / "from-source", unpacked, "-t", "wheel")
    assert _hash(folder / "from-source" / wheel.name) == _hash(wheel), "the source archive builds another wheel"


def environment(folder: Path, *requirements: str, options: tuple[str, ...] = ()) -> Path:
    """An empty environment with these packages; returns its folder of programs."""
    run(TOOLS / "uv", "venv", "--quiet", "--python", sys.executable, folder, cwd=folder.parent)
    run(
        TOOLS / "uv", "pip", "install", "--quiet", "--python", folder / "bin" / "python", *options, *requirements,
        cwd=folder.parent,
    )  # fmt: skip
    return folder / "bin"


def try_extras(wheel: Path, folder: Path) -> None:
    """Use each extra alone, with the newest versions and with the lowest."""
    for extra in EXTRAS:
        use = USES.get(extra, f"import sessiontree.adapters.{extra.replace('-', '_')}")
        package = f"sessiontree[{extra}] @ file://{wheel}"
        constraints = ("-c", str(lowest_versions(folder, extra)))
        for name, options in ((extra, ()), (f"{extra}-lowest", constraints)):
            programs = environment(folder / name, package, options=options)
            run(programs / "python", "-c", use, cwd=folder)
            print(f"sessiontree[{extra}]: ok in {name}", flush=True)


def lowest_versions(folder: Path, *extras: str) -> Path:
    """A file of constraints: the lowest versions that the core and these extras allow."""
    file = folder / f"lowest-{'-'.join(extras)}.txt"
    run(
        TOOLS / "uv", "pip", "compile", "--quiet", "--resolution", "lowest-direct", "--no-header", "--no-annotate",
        *(f"--extra={extra}" for extra in extras), ROOT / "pyproject.toml", "-o", file, cwd=folder,
    )  # fmt: skip
    return file


def try_core(wheel: Path, folder: Path) -> str:
    """Use the core alone, and return the table of its size."""
    programs = environment(folder / "core", f"sessiontree @ file://{wheel}")
    packages = run(programs / "python", "-c", CORE, cwd=folder).strip()
    run(programs / "sessiontree", "--version", cwd=folder)
    run(programs / "sessiontree", "demo", cwd=folder)
    site = next((folder / "core" / "lib").iterdir()) / "site-packages"
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    own = sum(path.stat().st_size for path in (site / "sessiontree").rglob("*.*") if path.suffix != ".pyc")
    assert int(packages) <= MOST_PACKAGES, f"the core brings {packages} packages"
    assert size <= MOST_BYTES, f"the core brings {size} bytes"
    for _ in range(2):  # the first run compiles the modules
        times = run(programs / "python", "-c", IMPORT_TIME, cwd=folder, PYTHONDONTWRITEBYTECODE="")
    imported, opened = times.split()
    return (
        "| packages | size | of it sessiontree | import | import and open |\n|---|---|---|---|---|\n"
        f"| {packages} | {size / 1e6:.1f} MB | {own / 1e6:.1f} MB | {imported} ms | {opened} ms |"
    )


def try_lowest(wheel: Path, folder: Path) -> None:
    """Run the contract with the lowest versions that are allowed."""
    extras = ("postgres", "tokens", "otel", "web")
    lowest = lowest_versions(folder, *extras)
    programs = environment(
        folder / "lowest", f"sessiontree[{','.join(extras)}] @ file://{wheel}", *TEST_TOOLS, options=("-c", str(lowest))
    )
    run(programs / "python", "-m", "pytest", "-q", "-o", "addopts=", "-n", "2", *CONTRACT, cwd=ROOT)
    run(programs / "sessiontree", "demo", cwd=folder)
    print(f"lowest versions: ok\n{lowest.read_text()}", flush=True)


def write_size(table: str) -> None:
    page = ROOT / "docs" / "explanation" / "size.md"
    start, end = "<!-- written by make test-package -->", "<!-- end -->"
    before, _, rest = page.read_text().partition(start)
    page.write_text(f"{before}{start}\n{table}\n{end}{rest.partition(end)[2]}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sessiontree-package-") as name:
        folder = Path(name)
        source, wheel = build(folder / "dist")
        check_contents(source, wheel)
        check_source(source, wheel, folder)
        write_size(try_core(wheel, folder))
        try_extras(wheel, folder)
        try_lowest(wheel, folder)


if __name__ == "__main__":
    main()
