"""Where the records of a text file end: at a line's end that is not inside quotes, which open at the beginning of a field only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from belated.compiling import njit
from belated.typing import Ints

_BOM = b"\xef\xbb\xbf"


def records_of(content: bytes, delimiter: str) -> Iterator[bytes]:
    """Each record with its line's end.

    >>> list(records_of(b'a,"b\\nc"\\n5" pipe,d', ","))
    [b'a,"b\\nc"\\n', b'5" pipe,d']
    """
    ends, _ = _scan(np.frombuffer(content, np.uint8), ord(delimiter), len(_BOM) if content.startswith(_BOM) else 0)
    start = 0
    for end in ends.tolist():
        yield content[start:end]
        start = end


def open_quote(data: NDArray[np.uint8], delimiter: int) -> int:
    """The line in which a quote opens that is still open at the end; 0 where there is none."""
    begin = len(_BOM) if bytes(data[: len(_BOM)]) == _BOM else 0
    return int(_scan(data, delimiter, begin)[1])


def more_than_a_byte(encoding: str) -> bool:
    """Whether an encoding, UTF-16 for one, has more than a byte for a comma."""
    return not "a,".encode(encoding).endswith(b"a,")


@njit()
def _scan(data: NDArray[np.uint8], delimiter: int, begin: int) -> tuple[Ints, int]:
    lines = 1
    for p in range(data.size):
        lines += data[p] == 10 or data[p] == 13
    ends, count = np.empty(lines, np.int64), 0
    quoted, at_start, p, line, opened = False, True, begin, 1, 0
    while p < data.size:
        c = data[p]
        line += c == 10
        if quoted:
            if c == 34:
                if p + 1 < data.size and data[p + 1] == 34:
                    p += 1
                else:
                    quoted = False
        elif c == 10 or (c == 13 and not (p + 1 < data.size and data[p + 1] == 10)):
            ends[count], at_start = p + 1, True
            count += 1
        else:
            quoted = c == 34 and at_start
            opened = line if quoted else opened
            at_start = c == delimiter
        p += 1
    if data.size and (count == 0 or ends[count - 1] != data.size):
        ends[count] = data.size
        count += 1
    return ends[:count].copy(), opened if quoted else 0
