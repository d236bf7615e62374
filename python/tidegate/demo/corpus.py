"""What the chatbot's users have written so far: made-up words, the same in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from string import ascii_lowercase

CONVERSATIONS = 2_000
MESSAGES = 100_000
_VOCABULARY = 2_000
_WORDS_PER_MESSAGE = 20


def messages() -> Iterator[tuple[int, str]]:
    """All messages in the order of their writing, as (conversation, text)."""
    rng = random.Random("tidegate demo corpus")  # noqa: S311
    vocabulary = ["".join(rng.choices(ascii_lowercase, k=rng.randint(3, 9))) for _ in range(_VOCABULARY)]
    for _ in range(MESSAGES):
        yield rng.randrange(CONVERSATIONS), " ".join(rng.choices(vocabulary, k=_WORDS_PER_MESSAGE))
