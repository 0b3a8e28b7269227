"""Names of platforms: what users may write, and where binaries go."""

from __future__ import annotations

import platform
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.errors import PlatformError
from mb2fmu.fmu.toolchain import PLATFORMS, host_platform, parse_platforms


def test_folders_are_those_of_the_standards() -> None:
    assert {each.name: each.folder(2) for each in PLATFORMS} == {
        "x86_64-linux": "linux64",
        "x86_64-windows": "win64",
        "x86_64-darwin": "darwin64",
        "aarch64-linux": "aarch64-linux",
        "aarch64-windows": "aarch64-windows",
        "aarch64-darwin": "aarch64-darwin",
    }
    assert all(each.folder(3) == each.name for each in PLATFORMS)


def test_oldest_systems_served_are_pinned() -> None:
    for each in PLATFORMS:
        pinned = {"linux": "gnu.2.17", "windows": "gnu", "darwin": "11.0" if each.processor == "aarch64" else "10.15"}
        assert each.target.endswith(pinned[each.system])


@given(st.lists(st.sampled_from(PLATFORMS), min_size=1), st.sampled_from([",", ", ", " ,"]))
def test_every_list_reads_back_once_each_and_in_order(chosen: list, comma: str) -> None:
    read = parse_platforms(comma.join(each.name for each in chosen))
    assert set(read) == set(chosen)
    assert list(read) == sorted(read, key=PLATFORMS.index)


def test_short_words() -> None:
    assert parse_platforms("all") == PLATFORMS
    assert parse_platforms("host") == (host_platform(),)
    assert [each.name for each in parse_platforms("win64,Linux64")] == ["x86_64-linux", "x86_64-windows"]
    assert [each.name for each in parse_platforms("darwin64")] == ["x86_64-darwin", "aarch64-darwin"]


@pytest.mark.parametrize("text", ["", "linux", "x86_64-linux,", "linux32,beos"])
def test_unknown_names_are_all_reported_with_what_there_is(text: str) -> None:
    with pytest.raises(PlatformError) as caught:
        parse_platforms(text)
    unknown = [name for name in text.split(",") if name not in {each.name for each in PLATFORMS}]
    assert len(caught.value.faults) == len(unknown)
    assert all("aarch64-darwin" in fault.remedy for fault in caught.value.faults)
    assert all(name in str(caught.value) for name in unknown)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("system", "machine", "name"),
    [
        ("linux", "x86_64", "x86_64-linux"),
        ("win32", "AMD64", "x86_64-windows"),
        ("win32", "ARM64", "aarch64-windows"),
        ("darwin", "arm64", "aarch64-darwin"),
        ("linux", "aarch64", "aarch64-linux"),
    ],
)
def test_host_has_one_name_on_every_system(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, name: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert host_platform().name == name


@pytest.mark.parametrize(
    ("system", "machine", "largest"), [("linux", "riscv64", 2**63), ("aix", "x86_64", 2**63), ("win32", "AMD64", 2**31)]
)
def test_other_hosts_are_refused(monkeypatch: pytest.MonkeyPatch, system: str, machine: str, largest: int) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(sys, "maxsize", largest - 1)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(PlatformError, match=machine):
        host_platform()
