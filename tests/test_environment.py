"""pyproject.toml, environment.yml and constraints.txt ask for the same packages and versions."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent


def table(requirements):
    """{name: specifier} of requirements; a package asked for twice must be asked for alike."""
    out = {}
    for r in map(Requirement, requirements):
        name = canonicalize_name(r.name)
        assert out.setdefault(name, r.specifier) == r.specifier, f"{name} is asked for in two ways"
    return out


def pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [r for extra in project["optional-dependencies"].values() for r in extra]
    return table([*project["dependencies"], *extras, "python" + project["requires-python"]])


def conda():
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    from_pip = [e for entry in entries if isinstance(entry, dict) for e in entry["pip"]]
    assert "-e ." in from_pip
    names = [e for e in entries if isinstance(e, str)] + from_pip
    return table(re.sub(r"(?<![=<>!~])=(?!=)", "==", e) for e in names if e not in ("pip", "-e ."))


def constraints():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return table(line for line in lines if line and not line.startswith("#"))


def test_environment_yml_asks_for_the_same():
    assert conda() == pyproject()


@pytest.mark.parametrize("name", sorted(set(pyproject()) - {"python"}))
def test_constraint_is_allowed(name):
    (pin,) = constraints()[name]
    assert pin.operator == "==" and Version(pin.version) in pyproject()[name]


def test_constraints_are_exact_and_name_no_address():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line


def test_the_project_itself_is_not_constrained():
    assert not {"minijax", "minijax-book"} & set(constraints())


def test_makefile_and_ci_run_what_the_readme_promises():
    """The two commands, and the rest of the README's list, are targets of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    promised = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / "README.md").read_text(), re.M))
    assert {"book", "test"} <= promised <= targets
    assert re.findall(r"^make ([a-z-]+)", (ROOT / ".ci" / "run").read_text(), re.M) == \
        ["test", "book", "site-check"]
