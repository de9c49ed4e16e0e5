"""The files below docs/deployment name metrics and options that there are; the rules say what they shall."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kwsniff.cli.live.command import add_parser
from kwsniff.live.metrics import Metrics

from .running import ROOT

FOLDER = ROOT / "docs" / "deployment"
KNOWN = Metrics().names
_METRIC = re.compile(r"\b((?:kwsniff|process)_[a-z_]+)\s*(?:\{([^}]*)\})?")
_BY = re.compile(r"\bby \(([^)]*)\)")
_SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)")
# Of Prometheus itself, and of rules.
_FOREIGN = {"instance", "le", "value", "severity"}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
    return found


def expressions() -> list[tuple[str, str]]:
    """Every query of the dashboard and of the rules, with the text that shows its labels."""
    found = [
        (target["expr"], target["legendFormat"])
        for panel in dashboard()["panels"]
        for target in panel["targets"]
    ]
    rules = (FOLDER / "alerts.yml").read_text()
    for rule in rules.split("- alert: ")[1:]:
        expression = rule.partition("expr:")[2].partition("for:")[0].partition("labels:")[0]
        found.append((" ".join(expression.replace(">-", "").split()), rule.partition("annotations:")[2]))
    return found


@pytest.mark.parametrize(("query", "legend"), expressions())
def test_queries_name_metrics_and_labels_that_there_are(query: str, legend: str) -> None:
    metrics = _METRIC.findall(query)
    assert metrics, query
    labels: set[str] = set()
    for name, selected in metrics:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in KNOWN or (base in KNOWN and KNOWN[base][0] == "histogram"), name
        kind, own = KNOWN[name if name in KNOWN else base]
        labels |= {*own}
        assert {each.partition("=")[0].strip(" !~") for each in selected.split(",") if each} <= {
            *own, *_FOREIGN,
        }  # fmt: skip
        if kind in ("counter", "histogram"):
            assert re.search(rf"(rate|increase)\(\s*{name}", query), f"{name} only grows"
    for group in _BY.findall(query):
        assert {each.strip() for each in group.split(",")} <= labels | _FOREIGN, query
    assert {*_SHOWN.findall(legend)} <= labels | _FOREIGN, legend


def test_every_metric_of_kafka_is_on_the_dashboard_or_in_a_rule() -> None:
    """Or is one of these, which say the same in another way."""
    used = {name for query, _ in expressions() for name, _ in _METRIC.findall(query)}
    used = {re.sub(r"_(bucket|sum|count)$", "", name) for name in used}
    assert {"kwsniff_finding", "kwsniff_broker_late_seconds", "kwsniff_kernel_dropped_packets_total"} <= used
    assert len(used) >= 15


def test_panels_do_not_cover_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    numbers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(numbers)) == len(numbers)
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


@pytest.mark.parametrize("command", [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]])
def test_promtool_agrees(command: list[str]) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([program, *command], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_nothing_to_say_about_the_metrics() -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    import kwsniff
    from kwsniff.live.session import Progress

    from .test_window import batches

    analysis = kwsniff.analyze(next(ROOT.glob("captures/group_classic/capture.pcap*")))
    metrics = Metrics("dumpcap")
    for step in batches(analysis):
        metrics.add(step, Progress(1, 2, 3, 4, 5, 6))
    done = subprocess.run(
        [program, "check", "metrics"], input=metrics.text(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["kwsniff-live.service", "sidecar.yaml", "debug.yaml", "daemonset.yaml"])
def test_commands_are_ones_that_live_takes(name: str) -> None:
    text = (FOLDER / name).read_text()
    if name.endswith(".service"):
        line = next(line for line in text.splitlines() if line.startswith("ExecStart="))
        words = shlex.split(line.partition("=")[2].replace("$KWSNIFF_OPTIONS", "-i eth0 --port 9092"))[2:]
    elif "args: [" in text:
        words = [word.strip(' "') for word in text.partition("args: [")[2].partition("]")[0].split(",")][1:]
    else:
        words = text.partition("-- kwsniff live ")[2].splitlines()[0].split()
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    assert parser.parse_args(["live", *words]).interface


@pytest.mark.parametrize("name", ["sidecar.yaml", "debug.yaml", "daemonset.yaml"])
def test_a_validator_accepts_the_manifests(name: str, tmp_path: Path) -> None:
    program = shutil.which("kubernetes-validate")
    if program is None:
        pytest.skip("kubernetes-validate is not installed")
    text = (FOLDER / name).read_text()
    if name == "debug.yaml":  # a part of a container: what kubectl debug makes of it
        rest = "".join(f"      {line}\n" for line in text.splitlines())
        text = (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: broker}\nspec:\n"
            "  containers: [{name: kafka, image: kafka}]\n  ephemeralContainers:\n"
            f"    - name: debug\n      image: kwsniff\n      targetContainerName: kafka\n{rest}"
        )
    manifest = tmp_path / name
    manifest.write_text(text)
    done = subprocess.run(
        [program, "--strict", str(manifest)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_containers_let_the_tool_have_its_right() -> None:
    """tcpdump has it by its file, which a user without rights takes only where that is not forbidden."""
    container = (ROOT / "Containerfile").read_text()
    assert "setcap cap_net_raw+ep /usr/bin/tcpdump" in container
    user = container.partition("USER ")[2].partition(":")[0]
    for name in ("sidecar.yaml", "debug.yaml", "daemonset.yaml"):
        text = (FOLDER / name).read_text()
        assert f"runAsUser: {user}\n" in text
        assert "allowPrivilegeEscalation: true\n" in text
        assert "add: [NET_RAW]" in text


@pytest.mark.parametrize("name", ["sidecar.yaml", "daemonset.yaml"])
def test_the_monitor_chooses_the_pods_and_a_port_that_they_have(name: str) -> None:
    yaml = pytest.importorskip("yaml")
    monitor, manifest = (yaml.safe_load((FOLDER / each).read_text()) for each in ("podmonitor.yaml", name))
    pod = manifest if manifest["kind"] == "Pod" else manifest["spec"]["template"]
    chosen = monitor["spec"]["selector"]["matchLabels"]
    assert chosen.items() <= pod["metadata"]["labels"].items()
    if manifest["kind"] == "DaemonSet":
        assert manifest["spec"]["selector"]["matchLabels"] == chosen
    ports = {port["name"] for each in pod["spec"]["containers"] for port in each["ports"] if "name" in port}
    assert {each["port"] for each in monitor["spec"]["podMetricsEndpoints"]} <= ports


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "kwsniff-live.service"
    text = (FOLDER / "kwsniff-live.service").read_text()
    unit.write_text(text.replace("/usr/bin/kwsniff", "/bin/true").replace("man:kwsniff(1)", "man:true(1)"))
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if "kwsniff-live.service" in line]
    assert [line for line in complaints if "man" not in line] == []
