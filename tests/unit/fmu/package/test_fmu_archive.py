"""Archives: the same files give the same bytes; what is no sound FMU is refused; nothing half written stays."""

import io
import stat
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.errors import PackageError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import fmu_archive, read_archive, write_files_for_run, write_fmu_archive

DESCRIPTION = "modelDescription.xml"
SOUND = InMemoryFileTree(
    {DESCRIPTION: b"<xml/>", "resources/a.py": b"x = 1\n" * 50, "binaries/linux64/M.so": bytes(range(256))}
)


def zipped(path, members, *, mode=0o644, kind=stat.S_IFREG):
    """An archive with any members at all."""
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = (kind | mode) << 16
            file.writestr(info, content)
    return path


names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_ äß.]{0,8}[a-z](/[a-z][a-z0-9]{0,5})?", fullmatch=True)
trees = st.dictionaries(names, st.binary(max_size=200), max_size=6).filter(
    lambda files: len({name.casefold() for name in files}) == len(files)
)


@given(files=trees)
def test_round_trip(files, tmp_path_factory):
    tree = InMemoryFileTree({**files, DESCRIPTION: b"<xml/>"})
    path = tmp_path_factory.mktemp("unit") / "Ä unit.fmu"
    write_fmu_archive(tree, path)
    assert read_archive(path) == tree


@given(files=trees, seed=st.randoms())
def test_same_bytes_in_any_order(files, seed):
    shuffled = list(files.items())
    seed.shuffle(shuffled)
    assert fmu_archive.make_fmu_archive(InMemoryFileTree(files)) == fmu_archive.make_fmu_archive(
        InMemoryFileTree(dict(shuffled))
    )


def test_nothing_of_when_and_where(tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    write_fmu_archive(SOUND, tmp_path / "one" / "M.fmu")
    monkeypatch.setattr("time.time", lambda: 2e9)
    write_fmu_archive(SOUND, tmp_path / "two" / "N.fmu")
    assert (tmp_path / "one" / "M.fmu").read_bytes() == (tmp_path / "two" / "N.fmu").read_bytes()
    with zipfile.ZipFile(tmp_path / "one" / "M.fmu") as file:
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert [info.filename for info in file.infolist()] == sorted(SOUND)
        assert {info.external_attr >> 16 for info in file.infolist()} == {stat.S_IFREG | 0o644}


def test_an_existing_fmu_survives_a_failure(tmp_path, monkeypatch):
    path = tmp_path / "M.fmu"
    write_fmu_archive(SOUND, path)
    before = path.read_bytes()

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(PackageError, match="No space left"):
        write_fmu_archive(InMemoryFileTree({DESCRIPTION: b"other"}), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["M.fmu"]


def test_what_is_no_fmu_is_not_written(tmp_path):
    with pytest.raises(PackageError, match=DESCRIPTION):
        write_fmu_archive(InMemoryFileTree({"readme": b""}), tmp_path / "M.fmu")
    assert not list(tmp_path.iterdir())


def test_what_is_no_folder_is_reported(tmp_path):
    (tmp_path / "file").write_bytes(b"kept")
    with pytest.raises(PackageError, match="choose a folder"):
        write_fmu_archive(SOUND, tmp_path / "file" / "M.fmu")
    assert (tmp_path / "file").read_bytes() == b"kept"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_missing_files_and_folders_are_refused(tmp_path):
    for path in (tmp_path / "none.fmu", tmp_path):
        with pytest.raises(PackageError, match="cannot be read"):
            read_archive(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip at all", b"<xml/>" * 100])
def test_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "M.fmu"
    path.write_bytes(content)
    with pytest.raises(PackageError, match="not an FMU"):
        read_archive(path)


@given(cut=st.integers(1, 10_000))
def test_truncated_archives_are_refused(cut):
    whole = fmu_archive.make_fmu_archive(SOUND)
    with pytest.raises(PackageError):
        fmu_archive.unpack_archive_bytes(whole[: -(cut % len(whole)) or -1], "M.fmu")


def test_damaged_content_is_never_taken_for_sound():
    """A flipped byte, wherever it is, is noticed, or is in a place that carries nothing (times, versions)."""
    sound = fmu_archive.make_fmu_archive(SOUND)
    noticed = 0
    for position in range(len(sound)):
        damaged = bytearray(sound)
        damaged[position] ^= 0xFF
        try:
            assert fmu_archive.unpack_archive_bytes(bytes(damaged), "M.fmu") == SOUND, position
        except PackageError:
            noticed += 1
    assert noticed > len(sound) / 2


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/../../evil", "/etc/passwd", "C:/evil", "C:evil", "..\\evil", "a\\b", "a/../b", "./a", "a//b"],
)
def test_members_that_leave_the_folder_are_refused(tmp_path, name):
    path = zipped(tmp_path / "M.fmu", [(DESCRIPTION, b"<xml/>"), (name, b"evil")])
    with pytest.raises(PackageError) as caught:
        read_archive(path)
    assert name in str(caught.value)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [("a", "a"), ("a", "A")])
def test_members_that_hide_each_other_are_refused(tmp_path, names):
    path = zipped(tmp_path / "M.fmu", [(DESCRIPTION, b"<xml/>"), *((name, b"") for name in names)])
    with pytest.raises(PackageError, match="more than once"):
        read_archive(path)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(tmp_path, kind):
    path = zipped(tmp_path / "M.fmu", [(DESCRIPTION, b"/etc/passwd")], kind=kind)
    with pytest.raises(PackageError, match="link or a device"):
        read_archive(path)


def test_archives_without_description_are_refused(tmp_path):
    path = zipped(tmp_path / "M.fmu", [("deep/modelDescription.xml", b"<xml/>")])
    with pytest.raises(PackageError, match="at its top"):
        read_archive(path)


def test_bombs_are_refused(tmp_path):
    path = tmp_path / "M.fmu"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(DESCRIPTION, b"<xml/>")
        file.writestr("zeros", b"\0" * (1 << 26))
    with pytest.raises(PackageError, match="do not use this file"):
        read_archive(path)


def test_encrypted_members_are_refused():
    whole = bytearray(fmu_archive.make_fmu_archive(InMemoryFileTree({DESCRIPTION: b"<xml/>"})))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        whole[whole.index(signature) + offset] |= 1
    with pytest.raises(PackageError, match="is encrypted"):
        fmu_archive.unpack_archive_bytes(bytes(whole), "M.fmu")


def test_all_faults_are_reported_at_once():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("../one", b"")
        file.writestr("/two", b"")
    with pytest.raises(PackageError) as caught:
        fmu_archive.unpack_archive_bytes(buffer.getvalue(), "M.fmu")
    assert len(caught.value.faults) == 3


def test_folders_are_left_out(tmp_path):
    path = zipped(tmp_path / "M.fmu", [("resources/", b""), (DESCRIPTION, b"<xml/>"), ("resources/a", b"")])
    assert list(read_archive(path)) == [DESCRIPTION, "resources/a"]


def test_what_runs_has_its_resources_and_no_sources(tmp_path):
    write_files_for_run(SOUND.joined(InMemoryFileTree({"sources/a.c": b"int a;"})), tmp_path / "full")
    found = {path.relative_to(tmp_path / "full").as_posix() for path in (tmp_path / "full").rglob("*.*")}
    assert found == set(SOUND)
    write_files_for_run(InMemoryFileTree({DESCRIPTION: b"<xml/>"}), tmp_path / "empty")
    assert (tmp_path / "empty" / "resources").is_dir()
