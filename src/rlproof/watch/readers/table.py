"""CSV with a header: what pandas, Lightning and spreadsheets write."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from rlproof.watch.readers.items import Item, MetricsRow, Unread
from rlproof.watch.readers.samples import is_sample, sample
from rlproof.watch.readers.tail import LENGTHY, PLAIN, TOO_LONG, Wait, lines
from rlproof.watch.readers.values import number, step_of


def read(path: str, wait: Wait | None = None) -> Iterator[Item]:
    """Every row below the header; empty cells are left out."""
    header: list[str] = []
    for where, cells in enumerate(_rows(_Texts(path, wait)), 1):
        if isinstance(cells, str):
            yield Unread(where, cells)
            continue
        if not header:
            header = [cell.strip() for cell in cells]
            continue
        if len(cells) != len(header):
            yield Unread(where, f"{len(cells)} cells, expected {len(header)}")
            continue
        yield _row(dict(zip(header, cells, strict=True)), where)


class _Texts:
    """The lines as text. A quote that is never closed would make one row of all of them."""

    def __init__(self, path: str, wait: Wait | None) -> None:
        self._lines = lines(path, wait)
        self.size = 0
        """Bytes of the row that is being read."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        _, raw = next(self._lines)
        self.size += len(raw)
        if raw == TOO_LONG or self.size > PLAIN:
            self.size = 0
            raise csv.Error(LENGTHY.replace("line", "row"))
        return raw.decode("utf-8-sig", "replace")


def _rows(texts: _Texts) -> Iterator[list[str] | str]:
    """The cells of every row, or why it can't be read; after that the reader begins anew."""
    reader = csv.reader(texts)
    while True:
        texts.size = 0
        before = csv.field_size_limit(PLAIN)  # a completion may be longer than Python's 128 kB
        try:
            row: list[str] | str = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            row = str(error)
        finally:
            csv.field_size_limit(before)
        yield row


def _row(cells: dict[str, str], where: int) -> Item:
    entry = {key: _cell(text) for key, text in cells.items() if text.strip()}
    if is_sample(entry):
        return sample(entry, where)
    values = {key: one for key, cell in entry.items() if (one := number(cell)) is not None}
    return MetricsRow(step_of(values), values, where)


def _cell(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
