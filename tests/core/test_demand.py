"""When the demand mix is frozen anew."""

from __future__ import annotations

from msgspec.structs import replace

from aliquot.core.demand import next_epoch
from aliquot.core.events import EpochBegan
from aliquot.core.settings import MixSource, Settings
from tests.support.build import a_request
from tests.support.worlds import WorldBuilder

WINDOW = Settings(mix_source=MixSource.WINDOW, mix_window=4, mix_epoch=3, seed=9)
ONE, TWO, SLICE = a_request(1), a_request(2), a_request(1, memory=2_000)


def epoch_after(site: WorldBuilder) -> EpochBegan | None:
    """The epoch due now, which then begins."""
    epoch = next_epoch(site.world, WINDOW, site.at)
    if epoch is not None:
        site.happen(epoch)
    return epoch


def test_a_mix_known_beforehand_never_changes_by_itself() -> None:
    site = WorldBuilder().submit("j")
    assert next_epoch(site.world, Settings(mix_source=MixSource.LIST), 0) is None


def test_a_site_that_starts_empty_has_a_mix_with_its_first_job() -> None:
    site = WorldBuilder(window=4)
    assert epoch_after(site) is None
    site.later(7).submit("j1", TWO)
    assert epoch_after(site) == EpochBegan(7, 1, 9, ((TWO, 1),))
    assert epoch_after(site) is None
    assert site.frozen.epoch.mix == ((TWO, 1),)


def test_an_epoch_lasts_so_many_submissions() -> None:
    site = WorldBuilder(window=4)
    began = []
    for number in range(10):
        site.submit(f"j{number}", ONE)
        began.append(epoch_after(site) is not None)
    assert began == [True, False, True, False, False, True, False, False, True, False]


def test_a_long_first_epoch_begins_anew_while_it_is_young() -> None:
    site, rules = WorldBuilder(window=100), replace(WINDOW, mix_epoch=20)
    began = []
    for number in range(1, 45):
        site.submit(f"j{number}", ONE)
        epoch = next_epoch(site.world, rules, site.at)
        if epoch is not None:
            site.happen(epoch)
            began.append(number)
    assert began == [1, 2, 6, 20, 40]


def test_epochs_missed_are_not_made_up_for() -> None:
    site = WorldBuilder(window=4)
    for number in range(10):
        site.submit(f"j{number}", ONE)
    epoch = epoch_after(site)
    assert epoch is not None
    assert epoch.number == 4
    assert epoch_after(site) is None


def test_the_mix_is_that_of_the_window_most_frequent_first_then_first_seen() -> None:
    site = WorldBuilder(window=4)
    for number, request in enumerate([TWO, TWO, ONE, SLICE, SLICE, ONE]):
        site.submit(f"j{number}", request)
    assert site.world.recent_demand() == ((ONE, 2), (SLICE, 2))


def test_every_member_of_a_gang_counts() -> None:
    site = WorldBuilder(window=4).submit("g", [TWO, ONE, ONE])
    assert site.world.recent_demand() == ((ONE, 2), (TWO, 1))


def test_a_job_that_comes_back_to_its_queue_is_not_new_demand() -> None:
    site = WorldBuilder(window=4).node("n").submit("j", ONE).placed().refused("j")
    assert site.world.recent_demand() == ((ONE, 1),)
    assert site.frozen.tally.submitted == 1
