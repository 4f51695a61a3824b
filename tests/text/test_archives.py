"""Packed files: what is inside comes out, what is hostile or damaged does not."""

import bz2
import gzip
import io
import lzma
import stat
import sys
import tarfile
import zipfile

import pytest

from headcount.errors import DataError, RequestError
from headcount.text import archives
from tests.conftest import make_text

TEXTS = {"b.txt": make_text(5_000, seed=1), "a/x.txt": make_text(3_000, seed=2), "c.txt": b""}
SINGLE = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def tar(members, mode="w:"):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if name == "evil":
                info.type, info.linkname = content, "/etc/passwd"
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def zipped(members, mode=0):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return packed.getvalue()


def read(path):
    return {name: b"".join(content) for name, content in archives.files(path)}


@pytest.mark.parametrize("ending", SINGLE)
def test_one_file_of_one_or_several_streams(tmp_path, ending):
    path = tmp_path / f"my.txt{ending}"
    path.write_bytes(SINGLE[ending](b"one ") + SINGLE[ending](b"two"))
    assert read(path) == {"my.txt": b"one two"} and b"".join(archives.only_file(path)) == b"one two"


def test_padding_between_streams_of_xz(tmp_path):
    path = tmp_path / "my.xz"
    path.write_bytes(lzma.compress(b"one ") + bytes(8) + lzma.compress(b"two") + bytes(4))
    assert read(path) == {"my": b"one two"}


@pytest.mark.parametrize("name", ["t.zip", "t.tar", "t.tar.gz", "t.tgz", "t.tar.bz2", "t.tar.xz"])
def test_archives_give_their_files_sorted_by_name(tmp_path, name):
    path = tmp_path / name
    modes = {"t.tar": "w:", "t.tar.gz": "w:gz", "t.tgz": "w:gz", "t.tar.bz2": "w:bz2", "t.tar.xz": "w:xz"}
    path.write_bytes(zipped(TEXTS.items()) if name == "t.zip" else tar(TEXTS.items(), modes[name]))
    assert list(read(path).items()) == sorted(TEXTS.items())


def test_names_say_what_is_packed():
    packed = ["a.gz", "a.TAR.GZ", "a.tgz", "a.zip", "a.tar", "a.zst", "a.xml.bz2"]
    assert all(archives.is_packed(archives.Path(name)) for name in packed)
    assert not any(archives.is_packed(archives.Path(name)) for name in ("a.txt", "gz", "a"))
    assert [archives.plain_name(name) for name in packed] == ["a", "a", "a", "a", "a", "a", "a.xml"]


def test_zst_where_it_can_be_unpacked(tmp_path):
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    path = tmp_path / "my.txt.zst"
    path.write_bytes(zstd.compress(b"one ") + zstd.compress(b"two"))
    assert read(path) == {"my.txt": b"one two"}
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataError, match="ends in the middle"):
        read(path)
    path.write_bytes(b"not zstd")
    with pytest.raises(DataError):
        read(path)


def test_zst_where_it_cannot_names_the_extra(tmp_path, monkeypatch):
    for module in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "my.zst").write_bytes(b"x")
    with pytest.raises(RequestError, match=r"pip install backports\.zstd"):
        read(tmp_path / "my.zst")


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "C:\\x", "\\x", "..\\x"])
def test_names_that_point_outside_are_refused(tmp_path, name):
    for path, packed in ((tmp_path / "t.zip", zipped([(name, b"x")])), (tmp_path / "t.tar", tar([(name, b"x")]))):
        path.write_bytes(packed)
        with pytest.raises(DataError, match="points outside"):
            read(path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path, kind):
    path = tmp_path / "t.tar"
    path.write_bytes(tar([("good.txt", b"good"), ("evil", kind)]))
    with pytest.raises(DataError, match="a link or a device"):
        read(path)


def test_links_in_a_zip_are_refused(tmp_path):
    path = tmp_path / "t.zip"
    path.write_bytes(zipped([("evil", b"/etc/passwd")], stat.S_IFLNK | 0o777))
    with pytest.raises(DataError, match="a link or a device"):
        read(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_refused(tmp_path):
    twice = [("a", b"one"), ("a", b"two")]
    for path, packed in ((tmp_path / "t.zip", zipped(twice)), (tmp_path / "t.tar", tar(twice))):
        path.write_bytes(packed)
        with pytest.raises(DataError, match="twice"):
            read(path)


def test_bombs_are_refused_while_they_unpack(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "ALWAYS_ALLOWED", 1 << 16)
    zeros = bytes(4 << 20)
    for name, packed in {
        "t.gz": gzip.compress(zeros),
        "t.bz2": bz2.compress(zeros),
        "t.xz": lzma.compress(zeros),
        "t.zip": zipped([(str(i), zeros[: 1 << 20]) for i in range(4)]),
        "t.tar.gz": tar([("a", zeros)], "w:gz"),
    }.items():
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(DataError, match="unpacks to more than"):
            read(tmp_path / name)


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    (tmp_path / "t.zip").write_bytes(zipped([(str(i), b"x") for i in range(4)]))
    with pytest.raises(DataError, match="4 files"):
        read(tmp_path / "t.zip")


@pytest.mark.parametrize("name", ["t.gz", "t.bz2", "t.xz", "t.zip", "t.tar", "t.tar.gz"])
def test_whatever_is_cut_or_changed_is_noticed(tmp_path, name):
    path, members = tmp_path / name, [("a", TEXTS["b.txt"]), ("b", TEXTS["a/x.txt"])]
    if name == "t.zip":
        packed = zipped(members)
    elif ".tar" in name:
        packed = tar(members, "w:gz" if name.endswith("gz") else "w:")
    else:
        packed = SINGLE[path.suffix](TEXTS["b.txt"])
    whole = len(packed) if name != "t.tar" else 512 * (1 + 10 + 1 + 6 + 1)  # what follows is padding
    for cut in range(0, whole - 1, max(1, whole // 40)):
        path.write_bytes(packed[:cut])
        with pytest.raises(DataError):
            read(path)
    if name == "t.tar":  # its headers have a checksum, its contents have none
        path.write_bytes(packed[:5700] + b"\xff" + packed[5701:])
        with pytest.raises(DataError, match="a header in it is broken"):
            read(path)
        return
    for place in range(20, len(packed) - 30, max(1, len(packed) // 40)):
        path.write_bytes(packed[:place] + bytes([packed[place] ^ 1]) + packed[place + 1 :])
        try:
            found = read(path)
        except DataError:
            continue
        assert list(found.values()) in ([TEXTS["b.txt"]], [content for _, content in members])  # a name or a date


def test_xz_that_asks_for_too_much_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_XZ_MEMORY", 1 << 20)
    (tmp_path / "t.xz").write_bytes(lzma.compress(b"x", preset=9))
    with pytest.raises(DataError, match=r"[Mm]emory"):
        read(tmp_path / "t.xz")


def test_a_password_is_asked_for(tmp_path):
    packed = bytearray(zipped([("a", b"secret")]))
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "t.zip").write_bytes(packed)
    with pytest.raises(RequestError, match="password"):
        read(tmp_path / "t.zip")


def test_only_file(tmp_path):
    (tmp_path / "two.zip").write_bytes(zipped([("a", b"one"), ("b", b"two")]))
    (tmp_path / "none.zip").write_bytes(zipped([]))
    with pytest.raises(DataError, match="several"):
        list(archives.only_file(tmp_path / "two.zip"))
    with pytest.raises(DataError, match="no file"):
        list(archives.only_file(tmp_path / "none.zip"))


def test_damage_always_has_a_reason(tmp_path):
    with (
        pytest.raises(DataError, match=r"x\.zip is damaged: it ends in the middle"),
        archives._damage_of(tmp_path / "x.zip"),
    ):
        raise EOFError  # as zipfile does, without a word
