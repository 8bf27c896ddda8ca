"""Files that appear whole or not at all, and what is no plain file."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from belated import FieldMatrix
from belated.tables.writing import folder_beside, write_beside

FIELDS = FieldMatrix(np.zeros((3, 2), dtype=np.int32), 4)


def write(path, content=b"whole"):
    write_beside(path, lambda file: file.write(content))


def test_a_folder_with_other_files_is_refused_and_kept(tmp_path):
    thesis = tmp_path / "folder" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("years of work")
    with pytest.raises(ValueError, match=r"folder: holds thesis.txt, which would be lost. Name a new folder"):
        FIELDS.save(thesis.parent)
    assert thesis.read_text() == "years of work"
    assert os.listdir(tmp_path) == ["folder"]
    with pytest.raises(ValueError, match=r"thesis.txt: is a file; name a folder"):
        FIELDS.save(thesis)


def test_a_folder_of_ones_own_an_empty_and_a_new_one_are_written(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new", "new", "deep/er"):
        FIELDS.save(tmp_path / name)
        assert len(FieldMatrix.open(tmp_path / name)) == 3
    assert sorted(os.listdir(tmp_path)) == ["deep", "empty", "new"]


def test_files_that_come_while_a_folder_is_filled_are_kept(tmp_path):
    def fill():
        with folder_beside(tmp_path / "out", {"a"}) as folder:
            (folder / "a").write_text("ours")
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "late.txt").write_text("theirs")

    with pytest.raises(ValueError, match=r"holds late.txt"):
        fill()
    assert (tmp_path / "out" / "late.txt").read_text() == "theirs"
    assert os.listdir(tmp_path) == ["out"]


def test_writers_of_one_name_do_not_meet(tmp_path):
    def save(k):
        write(tmp_path / "file", bytes([k]) * 100_000)
        FIELDS.save(tmp_path / f"folder{k % 3}-{threading.get_ident()}")
        content = (tmp_path / "file").read_bytes()
        return len(content) == 100_000 and len(set(content)) == 1

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(save, range(90)))
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".partial")]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_bytes() == b"whole"
    (tmp_path / "folder").symlink_to(tmp_path / "real2")
    FIELDS.save(tmp_path / "folder")
    assert (tmp_path / "folder").is_symlink() and len(FieldMatrix.open(tmp_path / "real2")) == 3


def test_a_device_stays_a_device():
    write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join(10)
    assert found == [b"whole"] and stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_that_goes_to_a_file_keeps_what_was_said_before(name, tmp_path):
    code = (
        "from belated.tables.writing import write_beside as w; print('before');"
        f"w({name!r}, lambda file: file.write(b'whole\\n')); print('after')"
    )
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "before\nwhole\nafter\n"


def test_a_full_disk_names_the_file_and_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match=r"/dev/full: could not be written \(No space left on device\)"):
        write("/dev/full")
    (tmp_path / "file").write_text("older")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limit[1]))  # files cannot grow past this, as on a full disk
    try:
        with pytest.raises(OSError, match=r"file: could not be written \(File too large\). Nothing was left behind"):
            write(tmp_path / "file", b"x" * 100_000)
        with pytest.raises(OSError, match=r"folder: could not be written"):
            FieldMatrix(np.zeros((50_000, 2), dtype=np.int32), 4).save(tmp_path / "folder")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (tmp_path / "file").read_text() == "older"
    assert os.listdir(tmp_path) == ["file"]


def test_there_must_be_a_folder(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        write(Path(tmp_path / "nowhere" / "file"))


def test_a_folder_inside_is_no_file_of_ones_own(tmp_path):
    inside = tmp_path / "out" / "indices.npy"
    inside.mkdir(parents=True)
    (inside / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match=r"holds indices.npy, which would be lost"):
        FIELDS.save(tmp_path / "out")
    assert (inside / "thesis.txt").exists()


def test_what_a_killed_process_left_behind_is_removed(tmp_path):
    target = tmp_path / "state.npz"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    litter, others = tmp_path / f".state.npz.{gone.pid}-abc.partial", tmp_path / f".state.npz.{os.getpid()}-abc.partial"
    strange = tmp_path / f".other.npz.{gone.pid}-abc.partial"
    for file in (litter, others, strange):
        file.write_text("half")
    write_beside(target, lambda file: file.write(b"whole"))
    assert target.read_bytes() == b"whole" and not litter.exists() and others.exists() and strange.exists()
