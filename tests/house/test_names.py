"""A module's name says what it is about: two rooms share one only where they have the same thing in hand."""

from collections import Counter

from .tree import ROOT

SHARED_NAMES = {
    "aggregates": "the tables of hours and days: declared, computed on Spark",
    "analyze": "a verb, and what it runs",
    "batches": "record batches: in the core, as lines; rows as live hands them over",
    "calls": "calls: their table, in the core, as live figures see them",
    "cluster": "brokers and their versions: their tables, their timeline",
    "columns": "columns of tables: declared, growing in the core",
    "decode": "messages decoded: a verb, one message, a bucket's",
    "details": "bytes of messages that timelines read: kept, read",
    "docs": "makes a page of docs/",
    "errors": "errors: that kwsniff raises, that a page shows",
    "failures": "errors by client and by broker: counted, on the screen",
    "files": "capture files read, table files written",
    "inputs": "what a run reads: of verbs, of a pipeline",
    "judgement": "findings: their table, of an analysis, of a pipeline",
    "limits": "bounds: declared, as options of verbs",
    "live": "a verb, and the packets it reads",
    "members": "members of groups: their table, their timeline",
    "model": "what the modules of a room pass on",
    "pipeline": "a verb, and what it runs",
    "rebalances": "rebalances: their timeline, a report's section",
    "records": "records of a batch: in the core, as Kafka's classes have them",
    "report": "findings as a person reads them: the parts, the page",
    "rows": "rows of tables: made in the core, made in Python",
    "session": "what holds a run together: of Spark, of a live capture",
    "summary": "the summary: as data, on the screen",
    "tcp_events": "what TCP had to do twice: the table, in the core",
    "times": "a part of captures by time: what is asked for, the options of verbs",
    "transport": "connections: their tables, their rows in the core",
    "connections": "in the core, and on the live view's page",
    "upgrade": "clients at another release: judged, a verb, a report's section",
    "words": "closed lists of words: of tables, of layouts, of a page",
}
"""Name -> what all modules of that name are about."""


def test_modules_of_different_things_have_different_names() -> None:
    found = Counter(
        path.stem
        for path in (ROOT / "kwsniff").rglob("*.py*")
        if path.suffix in (".py", ".pyx") and path.stem not in ("__init__", "__main__")
    )
    assert sorted(name for name, times in found.items() if times > 1 and name not in SHARED_NAMES) == []
