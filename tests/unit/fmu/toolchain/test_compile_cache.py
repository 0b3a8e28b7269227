"""The cache: what is got is what was put, whoever else writes, or nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mb2fmu.errors import ToolError
from mb2fmu.fmu import user_cache
from mb2fmu.fmu.toolchain.compile_cache import CompiledFileCache

KEY = "ab" * 32


def test_what_was_put_is_got(tmp_path: Path) -> None:
    cache = CompiledFileCache(tmp_path / "binaries")
    assert cache.get(KEY) is None
    for content in (b"", b"content", bytes(range(256)) * 1000):
        cache.put(KEY, content)
        assert cache.get(KEY) == content
    assert [each.name for each in cache.path.iterdir()] == [KEY]


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b + b"x", lambda b: b[:0], lambda b: b[:40] + b"x" + b[41:]]
)
def test_a_damaged_file_counts_as_missing(tmp_path: Path, damage) -> None:
    cache = CompiledFileCache(tmp_path)
    cache.put(KEY, b"some content")
    (tmp_path / KEY).write_bytes(damage((tmp_path / KEY).read_bytes()))
    assert cache.get(KEY) is None
    cache.put(KEY, b"some content")
    assert cache.get(KEY) == b"some content"


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    cache = CompiledFileCache(tmp_path, kept=3)
    keys = [f"{number:02x}" for number in range(4)]
    for age, key in enumerate(keys[:3]):
        cache.put(key, key.encode())
        os.utime(tmp_path / key, (1000 + age, 1000 + age))
    assert cache.get(keys[0]) == b"00"  # used now
    cache.put(keys[3], b"03")
    assert [cache.get(key) for key in keys] == [b"00", None, b"02", b"03"]


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = CompiledFileCache(tmp_path / "file" / "below")
    cache.put(KEY, b"content")
    assert cache.get(KEY) is None


_WRITER = """
import sys
from pathlib import Path
from mb2fmu.fmu.toolchain.compile_cache import CompiledFileCache

cache = CompiledFileCache(Path(sys.argv[1]), kept=2)
for round in range(200):
    content = sys.argv[2].encode() * (1 + round * 50)
    cache.put("00", content)
    read = cache.get("00")
    assert read is None or (len(set(read)) == 1 and len(read) in {1 + r * 50 for r in range(200)})
    cache.put(f"{round:02x}", content)
"""


def test_processes_that_write_at_once_never_see_half_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, letter], stderr=subprocess.PIPE, text=True) for letter in "ab"]
    errors = [writer.communicate(timeout=120)[1] for writer in writers]
    assert errors == [""] * 2
    assert not list(tmp_path.glob("new-*"))


def test_the_folder_is_named_by_a_variable_or_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(user_cache.CACHE_FOLDER_VARIABLE, str(tmp_path / "Ünter" / "a b"))
    assert user_cache.cache_folder() == tmp_path / "Ünter" / "a b"
    assert user_cache.cache_folder().is_dir()
    monkeypatch.delenv(user_cache.CACHE_FOLDER_VARIABLE)
    monkeypatch.setattr(user_cache.platformdirs, "user_cache_path", lambda name, **_: tmp_path / name)
    assert user_cache.cache_folder() == tmp_path / "mb2fmu"


def test_a_folder_that_cannot_be_made_is_reported_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv(user_cache.CACHE_FOLDER_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(ToolError, match=user_cache.CACHE_FOLDER_VARIABLE):
        user_cache.cache_folder()
