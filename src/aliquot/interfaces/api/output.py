"""Reads a piece of a job's output file, which lies in a folder its owner may write.

The service may read what its caller may not, so the file is opened only if it is a plain one of the owner's
own: a link to somebody else's file is refused.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from aliquot.control.errors import ForbiddenError

MOST: Final = 1 << 18


class Chunk(NamedTuple):
    """`body` ends at `offset` of `file` (an inode number, 0 where there is none)."""

    body: bytes
    offset: int
    file: int
    is_end: bool
    is_over: bool = False


def read_chunk(path: Path | None, offset: int, file: int, owner: int | None) -> Chunk:
    """Up to `MOST` bytes from `offset` on; from the beginning where `file` was rotated away since.

    `owner`: the uid whose file it must be, None to leave that to the kernel. Raises ForbiddenError.
    """
    if path is None:
        return Chunk(b"", 0, 0, is_end=True)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Chunk(b"", 0, 0, is_end=True)
    except OSError as error:
        raise ForbiddenError(f"{path}: {error.strerror}") from error
    try:
        found = os.fstat(fd)
        # not root's either: whoever owns a folder may move what root wrote there to the place of his output
        if not stat.S_ISREG(found.st_mode) or owner not in {None, found.st_uid}:
            raise ForbiddenError(f"{path} is not a plain file of the job's owner")
        begin = offset if file in {0, found.st_ino} and offset <= found.st_size else 0
        body = os.pread(fd, MOST, begin)
        end = begin + len(body)
        return Chunk(body, end, found.st_ino, is_end=end >= found.st_size)
    finally:
        os.close(fd)
