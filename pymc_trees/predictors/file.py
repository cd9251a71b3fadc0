"""Named arrays and facts about them in one file: checked, compressed, without Python objects.

Numbers are little-endian. A file is

============== ======= ============================================================================
bytes          type    meaning
============== ======= ============================================================================
8              bytes   `MAGIC`
4              uint32  `VERSION` of the format
4              uint32  number of sections, S
8              uint64  length of the file
32 S           table   of each section: stored length (uint64), length (uint64), checksum of the
                       stored bytes (16)
16             bytes   checksum of all bytes before it
stored lengths bytes   the sections, one after another, each compressed by zlib
============== ======= ============================================================================

Checksums are BLAKE2b of 16 bytes. The first section is JSON in UTF-8, an object with ``about`` and
``arrays``, a list of ``[name, type, shape]``; the type is NumPy's, such as ``<f8``. Each further
section is one of the arrays, in that order: C-contiguous, the first bytes of all numbers, then the
second ones, and so on. Equal contents make equal bytes, given a release of zlib.
"""

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"\x89PMT\r\n\x1a\n"
"""As PNG's: text conversion on the way changes it."""
VERSION = 1
LEVEL = 6
TYPES = {"|b1", "|u1", "<u2", "<u4", "<u8", "<i8", "<f8"}
MOST_SECTIONS = 100_000
_HEAD = struct.Struct("<8sIIQ")
_ENTRY = struct.Struct("<QQ16s")
_SUM = 16


class DamagedError(ValueError):
    """What is wrong in a file."""


def checksum(data) -> bytes:
    """BLAKE2b of 16 bytes."""
    return hashlib.blake2b(data, digest_size=_SUM).digest()


def packed(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Content of a file."""
    named, sections = [], []
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if array.dtype.str not in TYPES:
            array = array.astype("<i8" if array.dtype.kind in "iu" else "<f8")
        named.append([name, array.dtype.str, list(array.shape)])
        sections.append(array.reshape(-1).view(np.uint8).reshape(-1, array.dtype.itemsize).T)
    facts = {"about": about, "arrays": named}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    raw = [text, *(section.tobytes() for section in sections)]
    stored = [zlib.compress(one, LEVEL) for one in raw]
    entries = [_ENTRY.pack(len(s), len(r), checksum(s)) for s, r in zip(stored, raw, strict=True)]
    length = _HEAD.size + sum(map(len, entries)) + _SUM + sum(map(len, stored))
    head = b"".join([_HEAD.pack(MAGIC, VERSION, len(stored), length), *entries])
    return b"".join([head, checksum(head), *stored])


def unpacked(content: bytes, most: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Facts and arrays of a file, of at most so many bytes.

    Raises
    ------
    DamagedError
        With what is wrong.
    """
    if content[: len(MAGIC)] != MAGIC:
        raise DamagedError("it does not begin as one")
    if len(content) < _HEAD.size:
        raise DamagedError("it ends early")
    _, version, count, length = _HEAD.unpack_from(content)
    if version > VERSION:
        raise DamagedError(f"it has format {version}, and this release reads up to {VERSION}")
    start = _HEAD.size + count * _ENTRY.size
    if version < 1 or not 1 <= count <= MOST_SECTIONS or len(content) < start + _SUM:
        raise DamagedError("it ends early")
    if checksum(content[:start]) != content[start : start + _SUM]:
        raise DamagedError("the checksum of its table does not match")
    entries = list(_ENTRY.iter_unpack(content[_HEAD.size : start]))
    start += _SUM
    if length != len(content) or start + sum(stored for stored, _, _ in entries) != length:
        raise DamagedError(f"it has {len(content)} bytes instead of {length}")
    needed = sum(raw for _, raw, _ in entries)
    if needed > most:
        raise DamagedError(f"it takes {needed} bytes of memory, more than max_bytes={most}")
    sections = []
    for stored, raw, expected in entries:
        part = content[start : start + stored]
        start += stored
        if checksum(part) != expected:
            raise DamagedError("the checksum of a section does not match")
        sections.append(_decompressed(part, raw))
    return _read(sections)


def _decompressed(part: bytes, raw: int) -> bytes:
    """A section, which takes no more memory than the table says."""
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(part, raw + 1)
    except zlib.error:
        raise DamagedError("a section is not compressed") from None
    if len(data) != raw or not stream.eof or stream.unused_data or stream.unconsumed_tail:
        raise DamagedError("a section has another length")
    return data


def _read(sections: list[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        facts = json.loads(sections[0].decode())
        about, named = facts["about"], facts["arrays"]
        arrays = {}
        for (name, dtype, shape), data in zip(named, sections[1:], strict=True):
            if dtype not in TYPES or not all(isinstance(k, int) and k >= 0 for k in shape):
                raise DamagedError("an array is of another type")
            size, width = prod(shape), np.dtype(dtype).itemsize
            if len(data) != size * width:
                raise DamagedError("an array has another length")
            numbers = np.frombuffer(data, np.uint8).reshape(width, size)
            arrays[str(name)] = np.ascontiguousarray(numbers.T).reshape(-1).view(dtype)
            arrays[str(name)] = arrays[str(name)].reshape(shape)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, DamagedError):
            raise
        raise DamagedError("its facts are not those of a predictor") from None
    return about, arrays


def check_path(name: str, path) -> Path:
    """A file in a folder that is there, or an error that names the argument."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name}={path!r}: give the name of a file.")
    path = Path(path)
    if not path.parent.is_dir():
        raise ValueError(f"{name}={str(path)!r}: the folder {str(path.parent)!r} does not exist.")
    if path.is_dir():
        raise ValueError(f"{name}={str(path)!r} is a folder: add the name of a file.")
    return path


def write(path: Path, content: bytes | memoryview) -> None:
    """Write a file, completely or not at all."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(unfinished, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        _flush_names(path.parent)
    except OSError as error:
        raise OSError(
            f"path={str(path)!r} could not be written ({error}): an existing file is unchanged. "
            "Free disk space, or give another folder."
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)


def _flush_names(folder: Path) -> None:
    """Have the operating system write the names in a folder to disk."""
    if os.name == "nt":
        return  # Windows opens no folders
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
