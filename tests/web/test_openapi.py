"""The OpenAPI file describes every page and every action, and the server answers as it says, whatever it is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS

from sessiontree.web.openapi import openapi
from sessiontree.web.pages import ACTIONS, PAGES
from web.conftest import Viewer
from web.running import serving

EXAMPLES = 100 if os.environ.get("SESSIONTREE_PROFILE") == "deep" else 5
SCHEMA = openapi(PAGES, ACTIONS, "1")
OPERATIONS = [(path, method) for path, found in SCHEMA["paths"].items() for method in found]


def test_every_route_that_answers_with_data_is_described(viewer: Viewer) -> None:
    described = set(viewer.client.get("/openapi.json").json()["paths"])
    routes = {getattr(route, "path", "") for route in viewer.app.routes}
    assert {path for path in routes if path.endswith(".json") and path != "/openapi.json"} <= described
    assert described <= routes


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Iterator[tuple[Any, str, str]]:
    folder = tmp_path_factory.mktemp("api")
    (folder / "journal.db").write_bytes(sample.read_bytes())
    with serving("--store", "journal.db", folder=folder) as address:
        base, token = address.split("/?token=")
        yield schemathesis.openapi.from_dict(SCHEMA), base, token


@pytest.mark.xdist_group("openapi")
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_the_server_answers_as_described(served: tuple[Any, str, str], path: str, method: str) -> None:
    schema, base, token = served
    headers = {"authorization": f"Bearer {token}"}

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(case=schema[path][method.upper()].as_strategy())
    def asked(case: Any) -> None:
        answer = case.call(base_url=base, headers=headers)
        # A cursor is any text for the schema, but only one that the server made is accepted.
        has_cursor = bool((case.query or {}).get("cursor"))
        excluded = [CHECKS.get_one("positive_data_acceptance")] if has_cursor else []
        case.validate_response(answer, headers=headers, excluded_checks=excluded)

    asked()
