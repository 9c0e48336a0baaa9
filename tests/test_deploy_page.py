"""docs/deploy.md and deploy/: their policies allow what the server asks of DynamoDB and nothing else; their names are those of
the server, and the tools that deploy them take them."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from keygraph.dynamo.store import BatchWrite
from keygraph.engines.dynamodb.requests import render
from keygraph_examples import commerce
from keygraph_resolvers import OperationRequest, Service, build_schema
from keygraph_server.app import create_app
from keygraph_server.http.readiness import Readiness
from keygraph_server.settings import Settings, environment_name, read_settings
from tests.conftest import MakeStore
from tests.documents.samples import sample_of
from tests.helm import HelmMissing, helm
from tests.tracing import TracingStore

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/deploy.md").read_text("utf-8")
DEPLOY = ROOT / "deploy"
TEMPLATES = ("lambda.yaml", "fargate.yaml")
CHART = DEPLOY / "chart"
EXAMPLES = ROOT / "examples/keygraph_examples"
WRITTEN = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
MUTATIONS = (
    'createUser(input: {userId: "u1", name: "Ada", email: "a@example.com", userType: CUSTOMER, createdAt: "2024-01-01T00:00:00Z"})',
    'updateUser(input: {userId: "u1", name: "Ada L."})',
    'putProductTag(input: {productId: "ABC123", tagName: "new", createdAt: "2024-01-01T00:00:00Z"})',
    'deleteProductTag(input: {productId: "ABC123", tagName: "new"})',
    'deleteUser(input: {userId: "u1"})',
    'deleteProduct(input: {productId: "ABC123", onEdges: DETACH})',
)


class Template(yaml.SafeLoader):
    """Reads CloudFormation's short forms as what they are given."""


def _given(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    return loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else None


Template.add_multi_constructor("!", _given)


def template(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.load((DEPLOY / name).read_text("utf-8"), Template)  # a SafeLoader
    return content


def block(fence: str) -> str:
    [found] = re.findall(rf"^```{fence}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def actions(operation: str, body: dict[str, Any]) -> set[str]:
    """The IAM actions of a request: a transaction has those of its parts."""
    if operation == "TransactWriteItems":
        return {WRITTEN[kind] for each in body["TransactItems"] for kind in each}
    return {operation}


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_the_policy_allows_what_is_asked_and_nothing_else(make_store: MakeStore) -> None:
    store = TracingStore(await make_store(commerce.graph.table))
    await store.store.send(BatchWrite(tuple(sample_of("commerce"))))
    service = Service(build_schema(commerce.graph), store, secret=b"a secret")
    document = (EXAMPLES / "commerce.graphql").read_text("utf-8")
    for name in re.findall(r"^query (\w+)", document, re.MULTILINE):
        await service.execute(OperationRequest(document, operation_name=name))
    for mutation in MUTATIONS:
        answer = await service.execute(f"mutation {{ {mutation} {{ __typename }} }}")
        assert "errors" not in answer, answer
    readiness = Readiness(store)
    assert await readiness.problem() is None
    await readiness.close()

    wires = [wire for request in store.requests for wire in render(request, store.table)]
    asked = set().union(*(actions(wire.operation, wire.body) for wire in wires))
    allowed = [f"dynamodb:{action}" for action in sorted(asked)]
    [statement] = json.loads(block("json policy"))["Statement"]
    assert statement["Action"] == allowed
    for name in TEMPLATES:
        policy = template(name)["Resources"]["TablePolicy"]["Properties"]["PolicyDocument"]
        assert [each["Action"] for each in policy["Statement"]] == [allowed], name


def test_the_settings_and_paths_are_those_of_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named = set(re.findall(r"\bKEYGRAPH_[A-Z_]+\b", PAGE))
    assert named - {environment_name(name) for name in Settings.model_fields} == set()
    deployment, _ = yaml.safe_load_all(block("yaml"))
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    monkeypatch.chdir(tmp_path)
    app = create_app(read_settings())
    paths = {getattr(route, "path", "") for route in app.routes}
    assert {container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")} <= paths
    [task] = [json.loads(block("json ecs"))]
    settings = Settings()
    assert settings.stop_timeout < min(task["stopTimeout"], pod["terminationGracePeriodSeconds"])
    assert settings.port == task["portMappings"][0]["containerPort"] == container["ports"][0]["containerPort"]


def test_the_handler_is_there() -> None:
    module, _, name = "keygraph_server.lambdas.graphql".rpartition(".")
    assert f"`{module}.{name}`" in PAGE
    assert callable(getattr(importlib.import_module(module), name))


class TestTemplates:
    def test_settings_handlers_and_times_are_those_of_the_server(self) -> None:
        texts = [file.read_text("utf-8") for file in sorted(DEPLOY.rglob("*.*"))]
        named = set(re.findall(r"\bKEYGRAPH_[A-Z_]+\b", "".join(texts)))
        assert named - {environment_name(name) for name in Settings.model_fields} == set()
        on_lambda = template("lambda.yaml")["Resources"]
        for name in ("Server", "Changes"):
            module, _, handler = on_lambda[name]["Properties"]["Handler"].rpartition(".")
            assert handler in importlib.import_module(module).__all__
        settings = Settings()
        assert on_lambda["Server"]["Properties"]["Timeout"] > settings.operation_timeout
        [stream] = on_lambda["Changes"]["Properties"]["Events"].values()
        rows = dict(re.findall(r"^\| `(\w+)` \| `?([\w,]+)", PAGE, re.MULTILINE))
        for name, value in stream["Properties"].items():
            if name not in ("Stream", "MaximumBatchingWindowInSeconds"):
                assert rows[name].replace(",", "") == (value[0] if isinstance(value, list) else str(value))
        on_fargate = template("fargate.yaml")["Resources"]
        [container] = on_fargate["ServerTask"]["Properties"]["ContainerDefinitions"]
        assert settings.stop_timeout < container["StopTimeout"]
        assert container["PortMappings"] == [{"ContainerPort": settings.port}]
        [idle] = on_fargate["LoadBalancer"]["Properties"]["LoadBalancerAttributes"]
        assert int(idle["Value"]) < settings.keep_alive

    @pytest.mark.long
    def test_cloudformation_takes_the_templates(self) -> None:
        lint = Path(sys.executable).with_name("cfn-lint")
        done = subprocess.run([lint, *TEMPLATES], cwd=DEPLOY, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")

    def test_the_chart_names_values_that_it_has(self) -> None:
        values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
        for file in (CHART / "templates").iterdir():
            for path in re.findall(r"\.Values\.([\w.]+)", file.read_text("utf-8")):
                found = values
                for step in path.split("."):
                    found = found[step]
        version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
        assert chart["version"] == chart["appVersion"] == version

    @pytest.mark.long
    def test_helm_takes_the_chart(self) -> None:
        try:
            program = helm()
        except HelmMissing as error:
            pytest.skip(str(error))
        given = (
            "image=league:1",
            "table=League",
            "region=eu-central-1",
            "auth=none",
            "role=arn:aws:iam::1:role/r",
        )
        words = [word for each in given for word in ("--set", each)]
        for command in (["lint", "--strict"], ["template"]):
            done = subprocess.run(
                [program, *command, CHART, *words], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
