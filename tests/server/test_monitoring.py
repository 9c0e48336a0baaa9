"""The dashboard and the alerts: each query names metrics that the server has, with labels that they have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from keygraph_server.settings import Settings, environment_name
from tests.server.test_metrics import all_families

FOLDER = Path(__file__).parents[2] / "docker/monitoring"
RUNBOOKS = FOLDER.parents[1] / "docs/runbooks.md"
COMPOSE = yaml.safe_load((FOLDER.parent / "compose.yaml").read_text("utf-8"))["services"]

WORDS = {
    *("by", "ignoring", "on", "sum", "max", "rate", "topk", "histogram_quantile", "or", "and", "unless"),
    *("__rate_interval", "le", "inf"),
}
"""What stands in queries and is neither a metric nor a label."""
ADDED = {"worker", "instance", "job"}
"""The labels that every sample has: the port adds one, Prometheus the others."""


def alert_rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
    return content


def queries() -> Iterator[Any]:
    for rule in alert_rules():
        yield pytest.param(rule["expr"], id=rule["alert"])
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")


def labels_by_sample() -> dict[str, set[str]]:
    found = {"up": set(ADDED)}
    for family in all_families():
        labels = {*family.labels, *ADDED}
        if family.kind == "histogram":
            found[f"{family.name}_bucket"] = labels | {"le"}
            found[f"{family.name}_sum"] = found[f"{family.name}_count"] = labels
        else:
            found[family.name] = labels
    return found


@pytest.mark.parametrize("query", list(queries()))
def test_a_query_names_what_is_there(query: str) -> None:
    known = labels_by_sample()
    plain = re.sub(r'"[^"]*"', "", query)
    words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"\b[0-9][\w.]*", "", plain)))
    metrics = {word for word in words if word.startswith("keygraph_") or word == "up"}
    assert metrics <= known.keys()
    assert metrics
    labels = words - metrics - WORDS
    assert all(labels <= known[metric] for metric in metrics), labels


@pytest.mark.parametrize("family", all_families(), ids=lambda family: family.name)
def test_a_metric_is_on_the_dashboard(family: Any) -> None:
    shown = " ".join(target["expr"] for panel in dashboard()["panels"] for target in panel["targets"])
    assert re.search(rf"\b{family.name}", shown)


@pytest.mark.parametrize("rule", alert_rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}


def test_each_alert_has_its_runbook_and_each_runbook_its_alert() -> None:
    headings = re.findall(r"^## (\w+)$", RUNBOOKS.read_text("utf-8"), re.MULTILINE)
    assert headings == [rule["alert"] for rule in alert_rules()]
    for rule in alert_rules():
        assert rule["annotations"]["runbook_url"] == f"docs/{RUNBOOKS.name}#{rule['alert'].lower()}"


def test_the_runbooks_name_what_is_there() -> None:
    text = RUNBOOKS.read_text("utf-8")
    metrics = set(re.findall(r"\bkeygraph_\w+", text))
    assert metrics <= labels_by_sample().keys() | {family.name for family in all_families()}
    settings = set(re.findall(r"\bKEYGRAPH_[A-Z_]+\b", text))
    assert settings <= {environment_name(each) for each in Settings.model_fields}


def test_legends_use_labels_that_their_queries_keep() -> None:
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                grouped = re.search(rf"by \([^)]*\b{label}\b[^)]*\)", target["expr"])
                assert grouped or "sum" not in target["expr"], target


def test_panels_do_not_cover_each_other() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not own & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        taken |= own


def test_everything_asks_the_source_that_is_there() -> None:
    [source] = yaml.safe_load((FOLDER / "datasource.yaml").read_text("utf-8"))["datasources"]
    [chosen] = dashboard()["templating"]["list"]
    assert (chosen["type"], chosen["query"]) == ("datasource", source["type"])
    for panel in dashboard()["panels"]:
        assert panel["datasource"] == {"type": source["type"], "uid": f"${{{chosen['name']}}}"}


@pytest.mark.parametrize("query", list(queries()))
def test_a_query_is_well_formed(query: str) -> None:
    plain = re.sub(r'"[^"]*"', '""', query)
    for opening, closing in ("()", "[]", "{}"):
        assert plain.count(opening) == plain.count(closing)
    # A rate is of a counter, over a range.
    for rated in re.findall(r"rate\(([^()]*)\)", plain):
        assert re.fullmatch(
            r"\w+(?:_total|_sum|_count|_bucket)(?:\{[^}]*\})?\[(?:\d+[smh]|\$__rate_interval)\]", rated
        )
    assert len(re.findall(r"\[[^\]]+\]", plain)) == len(
        re.findall(r"\b(?:rate|increase|max_over_time)\(", plain)
    )


def test_alerts_have_a_time_and_names_of_their_own() -> None:
    rules = alert_rules()
    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert all(re.fullmatch(r"[1-9]\d*[smh]", rule["for"]) for rule in rules)


def test_prometheus_takes_the_files() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    for kind, file in (("rules", "alerts.yaml"), ("config", "prometheus.yaml")):
        command = [promtool, "check", kind, *(["--syntax-only"] if kind == "config" else []), file]
        found = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True)
        assert found.returncode == 0, found.stdout + found.stderr


class TestCompose:
    def test_what_services_name_is_there(self) -> None:
        for name, service in COMPOSE.items():
            assert {*service.get("depends_on", ())} <= COMPOSE.keys(), name
            assert "image" in service or "build" in service, name
        names = {environment_name(each) for each in Settings.model_fields}
        given = {each for each in COMPOSE["server"]["environment"] if each.startswith("KEYGRAPH_")}
        assert given <= names

    def test_docker_takes_the_file(self) -> None:
        if shutil.which("docker") is None:
            pytest.skip("docker is not installed")
        compose = ["docker", "compose"]
        if subprocess.run([*compose, "version"], capture_output=True).returncode:
            pytest.skip("docker compose is not installed")
        command = [*compose, "-f", "compose.yaml", "--profile", "monitoring", "config", "--quiet"]
        found = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True)
        assert found.returncode == 0, found.stderr

    def test_what_it_mounts_is_there(self) -> None:
        for name in ("prometheus", "grafana"):
            assert COMPOSE[name]["profiles"] == ["monitoring"]
            sources = [volume.split(":")[0] for volume in COMPOSE[name]["volumes"]]
            assert [source for source in sources if not (FOLDER.parent / source).is_file()] == []

    def test_prometheus_asks_the_port_that_the_server_serves(self) -> None:
        environment = COMPOSE["server"]["environment"]
        assert environment["AWS_ACCESS_KEY_ID"] == COMPOSE["table"]["environment"]["AWS_ACCESS_KEY_ID"]
        given = {
            name.removeprefix("KEYGRAPH_").lower(): value
            for name, value in environment.items()
            if name.startswith("KEYGRAPH_METRICS")
        }
        settings = Settings(**given)
        [job] = yaml.safe_load((FOLDER / "prometheus.yaml").read_text("utf-8"))["scrape_configs"]
        [config] = job["static_configs"]
        assert job["job_name"] == "keygraph"
        assert config["targets"] == [f"server:{settings.metrics_port}"]
        assert settings.metrics_host == "0.0.0.0"
        assert not any(str(settings.metrics_port) in port for port in COMPOSE["server"]["ports"])
        source = yaml.safe_load((FOLDER / "datasource.yaml").read_text("utf-8"))["datasources"][0]
        assert urlsplit(source["url"]).hostname in COMPOSE
