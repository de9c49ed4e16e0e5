"""Topic names for rows that Python computes, learned from Metadata responses."""

from typing import Any, NamedTuple

from kwsniff.timelines.decoded_messages import Fields, list_elements
from kwsniff.timelines.memory_budget import SHORT, MemoryBudget

MOST_TOPICS = 100_000
LONGEST_NAME = 256
_NO_ID = "A" * 22


class News(NamedTuple):
    """A newly learned topic: position of the call with its name, id and name."""

    place: int
    topic_id: str
    name: str


def topic_id_of(topic: Any) -> str | None:
    """Takes a Metadata response; brokers without topic ids send zeros."""
    found: str | None = topic.get("topic_id")
    return None if found == _NO_ID else found


class TopicNames:
    """Topic id (22 characters) -> name."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._names: dict[str, str] = {}
        self._news: list[News] = []

    def learn(self, metadata: Fields, place: int) -> None:
        """Takes a Metadata response."""
        for topic in list_elements(metadata, "topics"):
            name, topic_id = topic.get("name"), topic_id_of(topic)
            if not (name and topic_id) or topic_id in self._names:
                continue
            # Three times: the trackers of commits and of waits also keep the names.
            if self._budget.admits(6 * SHORT, full=len(self._names) >= MOST_TOPICS):
                self._names[topic_id] = name[:LONGEST_NAME]
                self._news.append(News(place, topic_id, name[:LONGEST_NAME]))

    def news(self) -> list[News]:
        """Topics learned since the last call, in order."""
        news, self._news = self._news, []
        return news

    def get(self, topic_id: str) -> str:
        """The name, or the id if the name is unknown."""
        return self._names.get(topic_id, topic_id)

    def state(self) -> tuple[Any, ...]:
        """The state for `resume`."""
        return (self._names,)

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        (self._names,) = state
