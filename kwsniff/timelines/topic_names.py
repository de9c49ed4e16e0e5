"""Names of topics that rows of Python's making show, learned from Metadata responses as they come."""

from typing import Any

from kwsniff.timelines.details import Said, listed

MOST_TOPICS = 100_000
LONGEST_NAME = 256


class TopicNames:
    """Topic id (22 characters) -> name."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, metadata: Said) -> None:
        """What a Metadata response says."""
        for topic in listed(metadata, "topics"):
            name, topic_id = topic.get("name"), topic.get("topic_id")
            if name and topic_id and len(self._names) < MOST_TOPICS:
                self._names[topic_id] = name[:LONGEST_NAME]

    def get(self, topic_id: str) -> str:
        """The name, or the id while nobody said it."""
        return self._names.get(topic_id, topic_id)

    def state(self) -> tuple[Any, ...]:
        """What is known, for `resume`."""
        return (self._names,)

    def resume(self, state: tuple[Any, ...]) -> None:
        """Goes on where another stood."""
        (self._names,) = state
