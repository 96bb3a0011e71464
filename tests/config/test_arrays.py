"""Arrays as they are written: sizes, widths and indices."""

from __future__ import annotations

import pytest

from aliquot.config.arrays import read_array
from aliquot.config.tree import Item
from aliquot.core.errors import DocumentError
from aliquot.core.jobs import Array


def written(text: str) -> Item:
    return Item("a.yaml", 3, "spec.array", text=text, plain=True)


@pytest.mark.parametrize(
    ("text", "size", "width", "indices"),
    [
        pytest.param("3", 3, None, (0, 1, 2), id="a size"),
        pytest.param("0-2", 3, None, (0, 1, 2), id="a range"),
        pytest.param("0-2%2", 3, 2, (0, 1, 2), id="a range and a width"),
        pytest.param("7,1-3,2", 4, None, (1, 2, 3, 7), id="a list, each once and rising"),
        pytest.param("10-20:4", 3, None, (10, 14, 18), id="a step"),
        pytest.param("5,", None, None, (), id="an end without an index"),
        pytest.param("3-1", None, None, (), id="a range the wrong way round"),
        pytest.param("0-9%", None, None, (), id="no width behind the sign"),
        pytest.param("0-9%0", None, None, (), id="a width of nothing"),
        pytest.param("0-9:0", None, None, (), id="a step of nothing"),
        pytest.param("0-999999999", None, None, (), id="more than anybody runs"),
        pytest.param("-1", None, None, (), id="a negative size"),
        pytest.param("0", None, None, (), id="nothing"),
        pytest.param("all", None, None, (), id="a word"),
    ],
)
def test_an_array_is_read_or_refused(
    text: str, size: int | None, width: int | None, indices: tuple[int, ...]
) -> None:
    if size is None:
        with pytest.raises(DocumentError) as caught:
            read_array("a", written(text))
        assert caught.value.file == "a.yaml"
        assert caught.value.field.startswith("spec.array")
        return
    assert read_array("a", written(text)) == (Array("a", size, width), indices)
