"""CSV with a header: what pandas, Lightning and spreadsheets write."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from rlproof.watch.readers.items import Item, MetricsRow, Unread
from rlproof.watch.readers.samples import is_sample, sample
from rlproof.watch.readers.tail import Wait, lines
from rlproof.watch.readers.values import number, step_of


def read(path: str, wait: Wait | None = None) -> Iterator[Item]:
    """Every row below the header; empty cells are left out."""
    texts = (text.decode("utf-8-sig", "replace") for _, text in lines(path, wait))
    header: list[str] = []
    for where, cells in enumerate(csv.reader(texts), 1):
        if not header:
            header = [cell.strip() for cell in cells]
            continue
        if len(cells) != len(header):
            yield Unread(where, f"{len(cells)} cells, expected {len(header)}")
            continue
        yield _row(dict(zip(header, cells, strict=True)), where)


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
