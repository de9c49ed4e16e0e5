"""The column `upstream_call_id` in files of the pipeline: on the driver, over the staged parts."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.analysis.capture_points import CapturePoints
from kwsniff.analysis.proxies import COLUMNS, PossibleProxies, find_possible_proxies
from kwsniff.analysis.upstream_calls import READ, keys_of_fetches
from kwsniff.layout.catalog import load_catalog
from kwsniff.spark.decode import Work
from kwsniff.spark.parts import Part
from kwsniff.spark.rewritten_parts import local_folder, rewrite_part
from kwsniff.spark.storage import Place
from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.schema import TABLES
from kwsniff.tables.write import texts_of

_MEMORY: Final = 512_000_000
"""Bytes that joining calls may take."""
_LARGEST: Final = 4 << 30
"""Bytes of parts that the driver reads; with more, no call has an upstream call."""


def fill_parts(work: Work, parts: Sequence[Part], points: CapturePoints) -> dict[Part, Part]:
    """Of the files of api_calls those with calls that a proxy passed on, each with the one that says so."""
    read = [part for part in parts if part.table in READ]
    if {*READ[:2]} - {part.table for part in read} or sum(part.size for part in read) > _LARGEST:
        return {}
    proxies = _find_proxies(read, work.staging)
    if not proxies.endpoints:
        return {}
    from kwsniff.analysis.proxied_calls import UpstreamCalls, join_upstream_calls

    def holds(part: Part, found: UpstreamCalls) -> bool:
        with work.staging.open_parquet(part.path) as file:
            batches = file.iter_batches(columns=["call_id"], use_threads=False)
            return any(
                np.isin(whole_numbers(each["call_id"], null=-1), found.calls).any() for each in batches
            )

    with local_folder(work.staging, read) as folder:
        files = {name: [folder / part.path for part in read if part.table == name] for name in READ}
        files = {name: paths for name, paths in files.items() if paths}
        fetches = keys_of_fetches(load_catalog(work.layouts))
        found = join_upstream_calls(files, proxies, points.printable, fetches, _MEMORY)
    words = texts_of(TABLES["api_calls"])
    return {
        part: rewrite_part(part, found.fill, "proxied", staging=work.staging, dictionaries=words)
        for part in read
        if found and part.table == "api_calls" and holds(part, found)
    }


def _find_proxies(parts: Sequence[Part], staging: Place) -> PossibleProxies:
    def connections() -> Iterator[pa.RecordBatch]:
        for part in parts:
            if part.table == "connections":
                with staging.open_parquet(part.path) as file:
                    yield from file.iter_batches(columns=[*COLUMNS], use_threads=False)

    return find_possible_proxies(connections())
