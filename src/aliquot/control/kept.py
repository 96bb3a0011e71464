"""What is stored beside a submission: whose it is, how it is called, and what only the engine can read."""

from __future__ import annotations

import msgspec


class Kept(msgspec.Struct, frozen=True):
    """`payload` is the engine's own, as JSON."""

    owner: int
    name: str
    command: tuple[str, ...]
    cwd: str
    payload: msgspec.Raw
    key: str = ""
    digest: str = ""  # of what was submitted under the key


_DECODER = msgspec.json.Decoder(Kept)


def encode_kept(kept: Kept) -> bytes:
    """`kept` as JSON."""
    return msgspec.json.encode(kept)


def decode_kept(body: bytes) -> Kept | None:
    """What `body` says; None where a broken disk has left nothing that can be read."""
    try:
        return _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
