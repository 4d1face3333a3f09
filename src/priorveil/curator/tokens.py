"""Tokens: who holds them, what they allow, and until when. A store holds only the SHA-256 of their secrets."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Literal, NamedTuple, Self, get_args

from priorveil.questions.campaign import stamp

# An admin may do everything, an analyst reads stored results, a collector sends batches of reports.
Role = Literal["admin", "analyst", "collect"]
ROLES: tuple[Role, ...] = get_args(Role)
SECRET_BYTES = 32
DIGEST_BYTES = 32  # of a SHA-256
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$(?!\n)"  # in Python $ also matches before a last newline


class Token(NamedTuple):
    """A token without its secret. The last moment of a token that ends is just before `expires`."""

    digest: bytes
    name: str
    role: Role
    expires: str | None = None

    @classmethod
    def of(cls, secret: str, name: str, role: Role, expires: str | None = None) -> Self:
        """The token that has this secret.

        >>> Token.of("secret", "alice", "analyst").name
        'alice'
        """
        return cls(token_digest(secret), name, role, expires)

    def is_valid(self) -> bool:
        """Whether the token still opens anything."""
        return self.expires is None or (stamp(datetime.now(UTC)) or "") < self.expires


def token_digest(secret: str) -> bytes:
    """What is stored of a secret. Secrets are random and long, so one hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
