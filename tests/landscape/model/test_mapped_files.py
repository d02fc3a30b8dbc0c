"""Files that are mapped where they are larger than the memory of the machine."""

import errno
import os
import sys
import tempfile

import psutil
import pytest
import torch

from landscape.model import mapped_files


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs files with holes, and memory by the page")
def test_a_file_larger_than_all_memory_is_mapped_and_written_to_in_memory_only(tmp_path):
    rows = 8 + 2 * (psutil.virtual_memory().total + psutil.swap_memory().total) // 2**28
    path = tmp_path / "models"
    with open(path, "wb") as file:
        os.truncate(file.fileno(), rows * 2**28)
        os.pwrite(file.fileno(), torch.ones(1).numpy().tobytes(), (rows - 1) * 2**28)
    models = mapped_files.map_tensor(path, torch.float32, (rows, 2**26))
    assert float(models[-1, 0]) == 1
    models[0, 0] = 5
    assert float(mapped_files.map_tensor(path, torch.float32, (1, 1))) == 0


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="files take space on the disk when they are written to")
def test_a_disk_without_space_is_noticed_before_anything_is_written(tmp_path, monkeypatch):
    def refuse(descriptor, begin, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}'"):
        mapped_files.scratch_tensor(torch.float32, (3, 4))
