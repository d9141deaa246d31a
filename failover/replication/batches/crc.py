"""Carries a CRC-32C over to changed bytes without reading the unchanged ones."""

from __future__ import annotations

from crc32c import crc32c

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, reflected
_ONES = 0xFFFFFFFF
_FEW = 1 << 16
_ZEROS = memoryview(bytes(_FEW))
_shifts: list[list[int]] = []


def carried(crc: int, old: bytes, new: bytes, behind: int) -> int:
    """Gives the CRC-32C of bytes that begin with ``new`` from the ``crc`` they had while they began with ``old``.

    ``old`` and ``new`` are of one length, ``behind`` is how many unchanged bytes follow. CRCs are linear: that of the
    difference, moved past the bytes behind, is the difference of the CRCs. So nothing but the named change enters,
    and bytes damaged since ``crc`` was made fail against the result as they did before.
    """
    # Below 64 KiB zeros are summed up more quickly than the way past them is looked up (16 KiB: 2 us against 7).
    difference = ~crc32c(_ZEROS[: behind % _FEW], ~(crc32c(old) ^ crc32c(new)) & _ONES) & _ONES
    behind, place = behind // _FEW, _FEW.bit_length() - 1
    while behind:
        if behind & 1:
            table = _shift(place)
            difference = (
                table[difference & 255]
                ^ table[256 + (difference >> 8 & 255)]
                ^ table[512 + (difference >> 16 & 255)]
                ^ table[768 + (difference >> 24)]
            )
        behind >>= 1
        place += 1
    return crc ^ difference


def _shift(place: int) -> list[int]:
    """Gives the tables that move a difference past 2 ** ``place`` zero bytes, one for each byte of the difference."""
    while len(_shifts) <= place:
        columns = [_past(_past(1 << bit, len(_shifts) - 1), len(_shifts) - 1) for bit in range(32)]
        tables = []
        for byte in range(4):
            table = [0]
            for column in columns[8 * byte : 8 * byte + 8]:
                table += [column ^ entry for entry in table]
            tables += table
        _shifts.append(tables)
    return _shifts[place]


def _past(difference: int, place: int) -> int:
    """Moves a difference past 2 ** ``place`` zero bytes; -1: past half a byte."""
    if place < 0:
        for _ in range(4):
            difference = (difference >> 1) ^ (_POLYNOMIAL if difference & 1 else 0)
        return difference
    table = _shifts[place]
    moved = 0
    for byte in range(4):
        moved ^= table[256 * byte + (difference >> 8 * byte & 255)]
    return moved
