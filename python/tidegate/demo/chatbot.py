"""The application: what the backend does for one request."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from tidegate.demo.corpus import MESSAGES
from tidegate.demo.database import Connection

# What one request should cost the database, in seconds of processor time: near the geometric middle of 10 and
# 30 ms, so that a machine that speeds up or slows down afterwards stays between them.
TARGET_SECONDS = 0.018

_TRIAL_DEPTH = 10_000
_TRIAL_CONVERSATIONS = range(15)


@dataclass(frozen=True, slots=True)
class Chatbot:
    """A chatbot that looks for context in the first `depth` messages ever written."""

    connection: Connection
    depth: int

    def warm_up(self) -> None:
        """Read a little, so that the first request does not find a connection that knows no schema."""
        self.connection.history(0)

    def answer(self, conversation: int) -> list[str]:
        """What a language model would be given to answer the conversation's last message."""
        history = self.connection.history(conversation)
        return history + self.connection.search(search_terms(history[0]), self.depth)


def search_terms(message: str) -> tuple[str, str, str]:
    """The three longest words, which say most about what a message is about."""
    first, second, third = sorted(message.split(), key=len, reverse=True)[:3]
    return first, second, third


def calibrate(connection: Connection, target: float = TARGET_SECONDS) -> int:
    """The search depth at which one request costs about `target` seconds of processor time here.

    The cost grows with the depth, so one trial depth will do. Where the clock sees other programs, the trials
    that they disturbed least come near the truth.
    """
    bot = Chatbot(connection, _TRIAL_DEPTH)
    bot.answer(0)
    costs: list[float] = []
    for conversation in _TRIAL_CONVERSATIONS:
        before = connection.stopwatch()
        bot.answer(conversation)
        costs.append(connection.stopwatch() - before)
    lower_quartile, *_ = statistics.quantiles(costs, n=4)
    return depth_for(target, _TRIAL_DEPTH, lower_quartile)


def depth_for(target: float, trial_depth: int, trial_cost: float) -> int:
    """Scale a trial to the target, within what the corpus holds."""
    return max(1, min(MESSAGES, round(trial_depth * target / trial_cost)))
