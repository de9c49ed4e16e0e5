"""The account on the page: the numbers of `why --json`, and texts that stay texts."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed")

from kwsniff.cli import main
from kwsniff.report.account import make_account
from kwsniff.report.page import write_page

CAPTURES = Path(__file__).parents[2] / "captures"


def _cells(page: str) -> list[list[str]]:
    """The rows of the account's table."""
    section = page[page.index('id="account"') :]
    section = section[: section.index("</section>")]
    rows = re.findall(r"<tr>(.*?)</tr>", section, re.DOTALL)
    return [
        [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
        for row in rows
    ]


@pytest.mark.parametrize("capture", ["killed_broker/capture.pcap", "incidents/not_authorized/broker.pcap"])
def test_the_page_has_the_numbers_of_the_json(
    capture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["why", str(CAPTURES / capture), "--json", "--html", str(tmp_path / "page.html")])
    told = json.loads(capsys.readouterr().out)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert f"{told['account']['calls']:,} calls: {told['account']['fine']:,} fine" in page
    shown = {(row[0], row[1]): row[2:] for row in _cells(page) if row}
    expected: dict[tuple[str, str], list[str]] = {}
    for place, side in enumerate(("account", "connections")):
        parts = [("unexplained", "", told[side]["unexplained"])] if told[side]["unexplained"] else []
        parts += [
            (kind, name, n) for kind in ("explained", "routine") for name, n in told[side][kind].items()
        ]
        for kind, name, count in parts:
            expected.setdefault((kind, name), ["", ""])[place] = f"{count:,}"
    assert shown == expected
    assert expected


def test_names_in_the_account_are_texts() -> None:
    name = "<script>alert(1)</script>"
    account = {"calls": 3, "fine": 1, "routine": {name: 1}, "explained": {name: 1}, "unexplained": 0}
    section = make_account({"account": account, "connections": None})
    assert section is not None
    file = io.StringIO()
    write_page(file, title="", summary=[], sections=[section])
    assert name not in file.getvalue()
    assert file.getvalue().count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2


def test_there_is_no_account_where_it_could_not_be_added_up_or_nothing_was_captured() -> None:
    nothing = {"fine": 0, "routine": {}, "explained": {}, "unexplained": 0}
    assert make_account({"account": None, "connections": None}) is None
    assert (
        make_account({"account": {"calls": 0, **nothing}, "connections": {"connections": 0, **nothing}})
        is None
    )


def test_where_all_is_fine_a_line_says_so_and_there_is_no_table() -> None:
    nothing = {"routine": {}, "explained": {}, "unexplained": 0}
    section = make_account({"account": {"calls": 2, "fine": 2, **nothing}})
    assert section is not None
    assert list(section.says) == ["2 calls: 2 fine."]
    assert not section.tables
