"""Machines to simulate from files: what is read, and every mistake with its place and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.catalog import load_catalog
from aliquot.config.shapes import read_shape
from aliquot.core.errors import DocumentError

GOOD = """\
name: mine
cards:
  - {model: L40S, count: 2}
  - {model: T4}
per_switch: 2
per_socket: 2
pcie: 5
cores: 32
memory_gib: 256
"""


def test_what_is_said_is_read_and_the_rest_left_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD)
    assert read_shape(file, load_catalog()) == {
        "name": "mine", "cards": [{"model": "L40S", "count": 2}, {"model": "T4"}],
        "per_switch": 2, "per_socket": 2, "pcie": 5, "cores": 32, "memory_gib": 256,
    }  # fmt: skip  # as it stands above
    file.write_text("{name: mine, cards: [{model: l40s}]}")
    assert read_shape(file, load_catalog()) == {"name": "mine", "cards": [{"model": "L40S"}]}


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        pytest.param(
            "name: mine", "nmae: mine", "1: nmae: unknown key 'nmae' (did you mean 'name'?)", id="key"
        ),
        ("name: mine", "# name", "2: 'name' is missing (add name)"),
        pytest.param(
            "name: mine", "name: [a]", "1: name: a list stands where one value is", id="a list of names"
        ),
        ("2}", "0}", "3: cards[0].count: 0 is out of range (1 to 16)"),
        ("2}", "two}", "3: cards[0].count: 'two' is not a whole number"),
        ("2}", "2.5}", "3: cards[0].count: '2.5' is not a whole number"),
        pytest.param(
            "2}", "17}", "3: cards[0].count: 17 is out of range (1 to 16)", id="too many of one kind"
        ),
        ("2}", "16}", "3: cards: a machine of 17 cards (16 at most)"),
        ("T4", "T5", "4: cards[1].model: unknown GPU model 'T5'"),
        ("T4", "A100", "4: cards[1].model: 'A100' may be any of several models"),
        pytest.param(
            "model: T4", "mdoel: T4", "4: cards[1].mdoel: unknown key 'mdoel' (did you", id="a typo"
        ),
        pytest.param(
            "{model: T4}", "T4", "4: cards[1]: 'T4' stands where a map of fields is", id="a bare model"
        ),
        pytest.param(
            "2}", "2, nvlinks: -1}", "3: cards[0].nvlinks: -1 is out of range", id="less than no link"
        ),
        ("2}", "2, nvlinks: 65}", "3: cards[0].nvlinks: 65 is out of range"),
        pytest.param(
            "per_switch: 2", "per_switch: 0", "5: per_switch: 0 is out of range", id="an empty switch"
        ),
        pytest.param(
            "per_socket: 2", "per_socket: x", "6: per_socket: 'x' is not a whole", id="a socket of x"
        ),
        ("pcie: 5", "pcie: 9", "7: pcie: 9 is out of range (3 to 6)"),
        ("pcie: 5", "pcie: gen5", "7: pcie: 'gen5' is not a whole number"),
        ("cores: 32", "cores: 0", "8: cores: 0 is out of range"),
        pytest.param(
            "gib: 256", "gib: 256GiB", "9: memory_gib: '256GiB' is not a whole", id="a unit too many"
        ),
        pytest.param(
            "gib: 256", "gib: 1.5", "9: memory_gib: '1.5' is not a whole number", id="one and a half"
        ),
        ("cores: 32", "cores: 32\ncores: 33", "9: cores: this key is given twice"),
        pytest.param(
            "memory_gib", "---\nmemory_gib", "10: a second machine (one machine in a file)", id="two"
        ),
        ("cards:\n", "cards: {\n", "not YAML"),
    ],
)
def test_every_mistake_is_named_with_its_place(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    file = tmp_path / "mine.yaml"
    assert right in GOOD
    file.write_text(GOOD.replace(right, wrong, 1))
    with pytest.raises(DocumentError) as caught:
        read_shape(file, load_catalog())
    assert str(caught.value).startswith(f"{file}:")
    assert said in str(caught.value)


def test_no_cards_no_file_and_a_folder_are_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    for text, said in (
        ("{name: x, cards: []}", f"{file}:1: cards: an empty list stands where a list is expected"),
        ("{name: x}", f"{file}:1: 'cards' is missing"),
        ("dgx-h100", f"{file}:1: 'dgx-h100' stands where a map of fields is expected"),
        ("", f"{file}: holds no document"),
    ):
        file.write_text(text)
        with pytest.raises(DocumentError) as caught:
            read_shape(file, load_catalog())
        assert str(caught.value).startswith(said)
    for path, said in ((tmp_path / "none.yaml", "no such file"), (tmp_path, "is a folder")):
        with pytest.raises(DocumentError, match=said):
            read_shape(path, load_catalog())
