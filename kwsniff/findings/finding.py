"""The data class of a finding."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kwsniff.findings.rule import Rule


@dataclass(slots=True)
class Finding:
    """One row of the table `findings`; the fields are its columns."""

    finding: str
    severity: str
    confidence: str
    blames: str
    subject_kind: str
    subject: str
    first_time: datetime | None
    last_time: datetime | None
    value: float | None
    expected: float | None
    unit: str
    calls: int
    time_share: float | None
    call_ids: list[int]
    frames: list[int]
    explained_by: str | None
    text: str
    advice: str
    command: str
    finding_id: int = 0
    """Place among the findings of a run, from 1; 0: not known yet."""
    parties: Mapping[str, str] = field(default_factory=dict)
    """Whom it concerns: client, broker, topic, group_id, as far as it says."""
    may_follow: bool = field(default=True, compare=False, repr=False)
    """Whether a finding of its rule's `explained_by` can be its cause."""
    cause: "Finding | None" = field(default=None, compare=False, repr=False)
    """The finding that `explained_by` names."""
    rule: Rule | None = field(default=None, compare=False, repr=False)
    harmed: int = field(default=0, compare=False, repr=False)
    """Harmed calls and connections that it, or one that follows from it, explains."""
    number: int = field(default=0, compare=False, repr=False)
    """Its place among the rows that rules gave, by which finding_calls.py knows it."""
    all_call_ids: "array[int]" = field(default_factory=lambda: array("q"), compare=False, repr=False)
    """Calls that the rule's query names, of which `call_ids` has the first; and packets."""
    all_frames: "array[int]" = field(default_factory=lambda: array("q"), compare=False, repr=False)
