"""Typed identities. An id comes from the device or the store and is never an index or a display name."""

from __future__ import annotations

from typing import NamedTuple, NewType

JobId = NewType("JobId", str)
"""Unique for ever; a job keeps it over all its attempts."""

CardId = NewType("CardId", str)
"""The UUID the driver reports, such as `GPU-4f2c...`."""

SiteId = NewType("SiteId", str)


class NodeId(NamedTuple):
    """A node of a site: two sites may both have a `node-1`."""

    site: SiteId
    name: str

    def __str__(self) -> str:
        return f"{self.site}/{self.name}" if self.site else self.name


class GrantId(NamedTuple):
    """What one member of one attempt of a job holds."""

    job: JobId
    attempt: int
    member: int
