"""Pages made of what the code says and does. `python -m tests.house.pages` regenerates them.

docs/compatibility.md, docs/limits.md, kwsniff/cli/kwsniff.1, and the examples in README.md,
docs/quickstart.md and docs/python.md.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from argparse_manpage.manpage import Manpage

from kwsniff.cli.main import make_parser
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.model import OPEN
from kwsniff.limits import Limits, limit_texts

from .tree import DOCS, ROOT

_COVERAGE = """\
# Compatibility

<!-- Made by `python -m tests.house.pages` from dissectors/kafka/ -->

kwsniff decodes {apis} APIs, {messages} layouts of requests and responses and {schemas} schemas inside bytes
fields and records: every version that a Kafka release used. "Flexible" is the first version with compact
lengths and tagged fields (KIP-482).

A newer version, or an API of another vendor, is counted and paired; its fields stay closed
(`unknown_version`, `unknown_api` in [anomalies](anomalies.md)). To add one, see
[CONTRIBUTING](../CONTRIBUTING.md).

## APIs

```text
{lines}
```

Early releases sent other bytes under the same version; `kwsniff decode` tries them when the newest layout
does not fit:

{alternates}

## Schemas inside bytes fields and records

`kwsniff explain TransactionLogValue` prints one.

"""

_LIMITS = """\
# Limits

<!-- Made by `python -m tests.house.pages` from kwsniff/limits.py -->

Every bound on memory and work. Reaching one is an [anomaly](anomalies.md#anomaly) and never stops a run.
Set one by its name:

    kwsniff analyze capture.pcap -o out --limit connections=1000000
    kwsniff.analyze("capture.pcap", limits={"connections": 1_000_000})

With `--jobs`, bounds over all connections hold for all analyzers together. In parentheses are the default
and the maximum.

"""


def coverage_page(catalog: Catalog) -> str:
    """docs/compatibility.md."""
    layouts = sum(api.max_version - api.min_version + 1 for api in catalog.apis.values()) * 2
    apis = [
        (str(api.key), api.name, _span(api.min_version, api.max_version), _flexible(api.flexible_from))
        for api in catalog.apis.values()
    ]
    early = [(api.name, _alternates(catalog, api.key)) for api in catalog.apis.values()]
    head = _COVERAGE.format(
        apis=len(apis),
        messages=layouts,
        schemas=len(catalog.schemas),
        lines=_aligned([("key", "API", "versions", "flexible"), *apis]),
        alternates="\n".join(f"- {name}: {texts}" for name, texts in early if texts),
    )
    return head + "".join(_module(catalog, name) for name in sorted(_modules(catalog)))


def _modules(catalog: Catalog) -> set[str]:
    return {schema.module for schema in catalog.schemas.values()}


def _module(catalog: Catalog, name: str) -> str:
    """The line of a module's schemas, each with its versions."""
    schemas = sorted(
        (schema for schema in catalog.schemas.values() if schema.module == name),
        key=lambda schema: schema.name,
    )
    return f"- {name}: " + ", ".join(f"{each.name} ({_list(each.versions)})" for each in schemas) + "\n"


def _aligned(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _list(versions: tuple[int, ...]) -> str:
    gapless = versions == tuple(range(versions[0], versions[-1] + 1))
    return _span(versions[0], versions[-1]) if gapless else ", ".join(map(str, versions))


def _flexible(version: int) -> str:
    return "never" if version == OPEN else str(version)


def _alternates(catalog: Catalog, key: int) -> str:
    layout = catalog.layout(key)
    messages = layout.messages if layout else ()
    return "; ".join(
        dict.fromkeys(f"version {_list(m.versions)} of {m.releases}" for m in messages if m.releases)
    )


def limits_page() -> str:
    """docs/limits.md."""
    values, ranges = Limits().as_dict(), Limits.ranges()
    lines = [
        f"- `{name}` ({_amount(name, values[name])}; {ranges[name][1]:,}): {text}"
        for name, text in _limit_texts().items()
    ]
    return _LIMITS + "\n".join(lines) + "\n"


def _limit_texts() -> dict[str, str]:
    """Name -> the text under its line in kwsniff/limits.py."""
    texts = limit_texts()
    for name in Limits.ranges():
        if name not in texts:
            raise SystemExit(f"kwsniff/limits.py: {name} is not explained")
    return texts


def _amount(name: str, value: int) -> str:
    if "bytes" not in name:
        return f"{value:,}"
    return f"{value >> 20} MiB" if value >= 1 << 20 else f"{value >> 10} KiB"


def readme() -> str:
    """README.md with the output of its example, and that of its Python."""
    text = (ROOT / "README.md").read_text("utf-8")
    python = text.partition("```python\n")[2].partition("```")[0]
    command = text.partition("```text\n$ ")[2].partition("\n")[0]
    return _with_outputs(text, (f"$ {command}\n{_said(command)}", _printed(python)))


def five_minutes() -> str:
    """docs/quickstart.md with what its commands print."""
    text = (DOCS / "quickstart.md").read_text("utf-8")
    commands = re.findall(r"^```text\n\$ (kwsniff [^\n]*)$", text, re.MULTILINE)
    return _with_outputs(text, [f"$ {command}\n{_said(command)}" for command in commands])


def reading_tables() -> str:
    """docs/python.md with what its last lines of Python print of first_steps' tables."""
    text = (DOCS / "python.md").read_text("utf-8")
    python = text.rpartition("```python\n")[2].partition("```")[0]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "kwsniff", "analyze", "captures/first_steps/capture.pcap"]
        subprocess.run([*command, "-o", f"{folder}/out"], cwd=ROOT, capture_output=True, check=True)
        return _with_outputs(text, [_printed(python, Path(folder))])


def _said(command: str) -> str:
    words = command.split()[1:]
    done = subprocess.run(
        [sys.executable, "-m", "kwsniff", *words],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode > 1:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout


def _with_outputs(text: str, made: Iterable[str]) -> str:
    outputs = iter(made)
    mark = r"(<!-- example: [^\n]*-->\n```text\n)[\s\S]*?(^```$)"
    return re.sub(mark, lambda match: match[1] + next(outputs) + match[2], text, flags=re.MULTILINE)


def _printed(python: str, folder: Path = ROOT) -> str:
    done = subprocess.run(
        [sys.executable, "-c", python], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def manual_page() -> str:
    """kwsniff/cli/kwsniff.1, made from the parsers; `kwsniff --man` puts the version where VERSION stands."""
    data = {"project_name": "kwsniff", "version": "VERSION", "manual_title": "kwsniff", "date": ""}
    data["description"] = "Packet-capture protocol analyzer for Apache Kafka"
    page = str(Manpage(make_parser(), data, format="pretty"))
    head, _, rest = page.partition("\n")
    if "VERSION" not in head:
        raise ValueError(head)
    return re.sub(r'"\d{4}\\-\d\d\\-\d\d"', '""', head) + f"\n{rest.rstrip()}\n"


def pages() -> dict[Path, str]:
    """Path -> content of every page that is made."""
    return {
        DOCS / "compatibility.md": coverage_page(load_catalog()),
        DOCS / "limits.md": limits_page(),
        DOCS / "quickstart.md": five_minutes(),
        DOCS / "python.md": reading_tables(),
        ROOT / "README.md": readme(),
        ROOT / "kwsniff" / "cli" / "kwsniff.1": manual_page(),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
