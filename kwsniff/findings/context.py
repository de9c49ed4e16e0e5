"""The context of findings: size of the traffic, errors, slowest calls, and limits of the capture."""

from typing import TYPE_CHECKING, Any, Final

from kwsniff.findings.database import lacks_memory
from kwsniff.findings.evaluate import fetch
from kwsniff.findings.rule import LAST, load_gates
from kwsniff.findings.sql import load_questions
from kwsniff.tables.error_codes import SIDES
from kwsniff.texts import plural

if TYPE_CHECKING:
    import duckdb

_SHORT_SECONDS = 60

_BASIS = """
select
    (select count(*) from call) as calls,
    (select count(*) from call where status in ('answered', 'no_response_expected')) as whole_calls,
    (select count(distinct client) from client_call) as clients,
    (select count(distinct broker) from connection where protocol = 'kafka') as brokers,
    (select count(*) from connection where protocol = 'kafka') as connections,
    (select count(*) from connection where protocol = 'kafka' and not handshake) as begun_before,
    (select count(*) from connection where protocol = 'tls' and not (coalesce(tls_hello, false)
        and tls_cipher is null and broker_packets > 0 and broker_missing_bytes = 0)) as sealed,
    (select count(*) from connection where protocol = 'kafka'
        and (client_packets = 0 or broker_packets = 0)) as one_sided,
    (select count(*) from call where status = 'response_not_captured' and (run_id, call_id) not in (
        select (run_id, call_id) from never_arrived)) as not_captured,
    (select count(*) from connection where protocol = 'kafka'
        and capture_point in ('between', 'unknown')) as no_capture_point,
    (select coalesce(sum(tcp_payload_bytes), 0)::bigint from captures) as payload_bytes,
    (select first_time from span) as first_time, (select seconds from span) as seconds,
    (select list(distinct capture order by capture) from captures) as captures
"""


_SERVERS = """
select product, version_min, version_max, count(*) as count from servers group by all
order by count desc, product, version_min
"""


def describe_basis(database: "duckdb.DuckDBPyConnection") -> dict[str, Any]:
    """The amount of traffic that was evaluated, and its gaps.

    calls, whole_calls, clients, brokers, connections, payload_bytes, seconds (or None), first_time,
    captures; servers: products and releases, most frequent first. begun_before, sealed, one_sided,
    not_captured, no_capture_point count connections or calls. A connection
    without ServerHello is not in `sealed`: TLS hides nothing there. No capture has what the
    network lost.
    """
    return fetch(database, _BASIS)[0] | {"servers": fetch(database, _SERVERS)}


_ERRORS = """
with asked as (select {key}, count(*) as all_calls from client_call group by all),
told as (
    select {key}, error_code, any_value(error_name) as error_name, count(*) as count,
        count(distinct (run_id, call_id)) as calls, min(coalesce(topic, topic_id, group_id)) as least,
        max(coalesce(topic, topic_id, group_id)) as greatest
    from refusal group by {key}, error_code
)
select {told}, error_code, error_name, count, calls, round(calls / all_calls, 4) as share {about}
from told t left join asked a on {same}
order by count desc, {told}, error_code
"""


_ABOUT = ", least || case when least <> greatest then ' and others' else '' end as about"


def count_errors(
    database: "duckdb.DuckDBPyConnection", *, about: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """errors_by_client and errors_by_broker, most errors first, without inter-broker calls.

    `count`: errors; `calls`: those with the error; `share`: of all calls of the client, or to the broker;
    and, on request, `about`: the topic or group of the errors, or the first of several; None if there is
    none.
    """
    found = {}
    for side, key in SIDES.items():
        names = {
            "key": ", ".join(key),
            "told": ", ".join(f"t.{name}" for name in key),
            "same": " and ".join(f"t.{name} is not distinct from a.{name}" for name in key),
            "about": _ABOUT if about else "",
        }
        found[f"errors_by_{side}"] = fetch(database, _ERRORS.format(**names))
    return found


_CHECKED = {
    "network": "the network",
    "errors": "error responses",
    "capture": "the capture",
}
_SLOWEST = """
with own as (
    select c.client, coalesce(c.api_name, 'API ' || c.api_key, 'unknown') as api,
        case when len(c.topics) > 1 then c.topics[1] || ' and ' || (len(c.topics) - 1) || ' more'
            else coalesce(c.topics[1], '') end as topic,
        l.call_id, l.broker_ns, l.network_ns, l.queue_wait_ns,
        l.request_transmission_ns + l.response_transmission_ns as transmission_ns,
        case when l.wait like 'replicas%' then l.deliberate_wait_ns else 0 end as replicas_ns
    from latency l join client_call c using (run_id, call_id)
),
summed as (
    select *, broker_ns + network_ns + queue_wait_ns + transmission_ns + replicas_ns as own_ns from own
)
select client, api, topic, count(*) as calls, avg(own_ns)::bigint as mean_ns, max(own_ns) as max_ns,
    arg_max(call_id, own_ns) as call_id, sum(own_ns)::bigint as all_ns, sum(broker_ns)::bigint as broker,
    sum(network_ns)::bigint as network, sum(queue_wait_ns)::bigint as queued,
    sum(transmission_ns)::bigint as transmission, sum(replicas_ns)::bigint as replicas
from summed group by client, api, topic order by max_ns desc, client, api, topic limit $most
"""
_PARTS = ("broker", "network", "queued", "transmission", "replicas")
QUERIES: Final = (_BASIS, _SERVERS, _ERRORS, _SLOWEST)
"""What the functions of this module ask."""


def describe_checks() -> str:
    """One sentence on the rules."""
    gates = [gate for gate in load_gates() if gate.group != LAST]
    *groups, last = dict.fromkeys(_CHECKED.get(gate.group, gate.group) for gate in gates)
    return f"Checked: {len(gates)} rules on {', '.join(groups)} and {last}."


def list_slowest(database: "duckdb.DuckDBPyConnection", most: int = 3) -> list[dict[str, Any]]:
    """The slowest calls of clients by client, API and topic, those with the longest call first.

    `mean_ns`, `max_ns`: without deliberate waits, but with waits for replicas; `mostly`: the largest part;
    `call_id`: the longest call.
    """
    rows = fetch(database, _SLOWEST, {"most": most})
    return [row | {"mostly": max(_PARTS, key=row.__getitem__)} for row in rows]


def list_readers(database: "duckdb.DuckDBPyConnection", most: int = 3) -> list[dict[str, Any]]:
    """How long records took to readers, by topic and group, those with the longest way first: the rows of the
    question delivery_time. An empty list where memory does not suffice to sort them."""
    return _answer(database, "delivery_time", f"limit {most}")


def list_rebalances(database: "duckdb.DuckDBPyConnection", most: int = 3) -> list[dict[str, Any]]:
    """Cause and cost of rebalances, those first whose partitions stopped longest: rows of the question
    rebalances. An empty list where memory does not suffice to sort them."""
    # One look at a small table: most captures have no rebalance of a group that was at work.
    if not fetch(database, "select 1 from groups where generation_before is not null limit 1"):
        return []
    return _answer(
        database, "rebalances", f"where stopped_ms is not null order by stopped_ms desc limit {most}"
    )


def _answer(database: "duckdb.DuckDBPyConnection", question: str, chosen: str) -> list[dict[str, Any]]:
    try:
        return fetch(database, f"from ({load_questions()[question].query}) {chosen}")
    except Exception as error:
        if not lacks_memory(error):
            raise
        return []


def list_not_seen(basis: dict[str, Any]) -> list[str]:
    """Limits of these tables, a sentence each."""
    said = []
    if basis["sealed"]:
        said.append(
            f"{plural(basis['sealed'], 'TLS connection')} stayed encrypted: "
            "their calls are unknown without --tls-keylog."
        )
    if basis["one_sided"]:
        said.append(
            f"{plural(basis['one_sided'], 'connection')} captured in one direction only: "
            "the capture cannot show whether the broker responded."
        )
    if basis["not_captured"]:
        said.append(
            f"{plural(basis['not_captured'], 'call')} may have a response: the capture lacks bytes of it."
        )
    if basis["begun_before"]:
        said.append(
            f"{plural(basis['begun_before'], 'connection')} began before the capture: "
            "their earlier calls are unknown."
        )
    if basis["no_capture_point"] and basis["no_capture_point"] == basis["connections"]:
        said.append("The capture point is unknown: network time counts as broker time.")
    if basis["seconds"] is not None and basis["seconds"] < _SHORT_SECONDS:
        said.append(f"The capture is {basis['seconds']:.1f} s long; rarer events may not appear.")
    said.append("Inter-broker traffic on other networks and delays inside clients are not visible here.")
    return said
