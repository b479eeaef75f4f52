"""Who may ask: only somebody with the token or its cookie, under a name of this machine, and writes from our own pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import sessiontree as st
from known import present
from sessiontree.web.assets import asset_url
from sessiontree.web.safety import HEADERS
from web.conftest import ACCESS, HOST, Viewer

OWN = {"origin": f"http://{HOST}"}
PATHS = ("/", "/index.json", "/threads", asset_url("viewer.js"), "/t/x", "/nowhere")


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_shown_without_the_token(viewer: Viewer, path: str) -> None:
    answer = viewer.stranger.get(path)
    assert answer.status_code == 401
    assert "sessiontree web" in answer.text


@pytest.mark.parametrize("cookie", ["", "sessiontree-8421=wrong", "sessiontree-80=the-cookie", "sessiontree-8421="])
def test_a_wrong_cookie_opens_nothing(viewer: Viewer, cookie: str) -> None:
    assert viewer.stranger.get("/", headers={"cookie": cookie}).status_code == 401


def test_the_token_in_the_address_becomes_a_cookie(viewer: Viewer) -> None:
    first = viewer.stranger.get(f"/?token={ACCESS.token}&find=x")
    assert (first.status_code, first.headers["location"]) == (303, "/?find=x")
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert ACCESS.token not in cookie
    assert viewer.stranger.get("/").status_code == 200


def test_a_wrong_token_is_refused(viewer: Viewer) -> None:
    assert viewer.stranger.get("/?token=guess").status_code == 401
    assert viewer.stranger.get("/", headers={"authorization": "Bearer guess"}).status_code == 401


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example/x"])
def test_the_exchange_of_the_token_does_not_lead_elsewhere(viewer: Viewer, path: str) -> None:
    answer = viewer.stranger.get(f"http://{HOST}{path}?token={ACCESS.token}")
    assert answer.headers["location"].startswith("/evil.example")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example:8421",
        "evil.example:8421",
        "",
        "[::1].evil.example:8421",
        "[::1]evil.example",
        "127.0.0.1:8421.evil.example",
        "localhost:8421:80",
        "[::1%25evil.example]:8421",
    ],
)
def test_a_name_that_was_rebound_to_this_machine_is_refused(viewer: Viewer, host: str) -> None:
    for path in (*PATHS, "/healthz"):
        assert viewer.client.get(path, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8421", "127.0.0.1:8421", "[::1]:8421"])
def test_names_of_this_machine_are_answered(viewer: Viewer, host: str) -> None:
    assert viewer.client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {**OWN, "sec-fetch-site": "cross-site"},
        {**OWN, "sec-fetch-site": "same-site"},
    ],
)
def test_a_write_from_another_page_is_refused(viewer: Viewer, headers: dict[str, str]) -> None:
    cookie = {"cookie": f"sessiontree-8421={ACCESS.cookie}"}
    assert viewer.stranger.post("/threads", headers={**cookie, **headers}).status_code == 403
    assert viewer.stranger.post("/threads", headers={**cookie, **OWN}).status_code == 405


@pytest.mark.parametrize("path", [*PATHS, "/healthz"])
def test_every_answer_carries_the_policy(viewer: Viewer, path: str) -> None:
    for client in (viewer.client, viewer.stranger):
        answer = client.get(path)
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


def test_pages_have_no_inline_script_and_no_inline_style(viewer: Viewer) -> None:
    viewer.journal.append("t", st.user("hello"), create=True)
    page = viewer.html("/")
    assert "<style" not in page
    assert " style=" not in page
    assert page.count("<script") == page.count('<script type="module" src="/static/') == 1


def test_health_and_readiness_need_no_token_and_tell_nothing(viewer: Viewer) -> None:
    viewer.journal.append("secret-thread", st.user("secret"), create=True)
    assert viewer.stranger.get("/healthz").text == "alive"
    assert viewer.stranger.get("/readyz").text == "ready"


def test_a_store_that_cannot_be_read_is_not_ready(tmp_path: Path, viewer: Viewer) -> None:
    present(viewer.client.portal).call(viewer.site.journal.close)
    answer = viewer.client.get("/readyz")
    assert (answer.status_code, answer.text) == (503, "not ready")


@pytest.mark.parametrize(
    "path", ["{}/../../app.py", "{}/%2e%2e/app.py", "{}/..%2fapp.py", "{}/nothing.js", "{}/", "/static/0/viewer.js"]
)
def test_only_files_of_ours_are_served(viewer: Viewer, path: str) -> None:
    folder = asset_url("viewer.js").rpartition("/")[0]
    assert viewer.client.get(path.format(folder)).status_code == 404


def test_a_browser_keeps_the_files_of_a_page_without_asking_again(viewer: Viewer) -> None:
    files = re.findall(r'(?:href|src)="(/static/[^"]+)"', viewer.html("/"))
    assert [name.rpartition("/")[2] for name in files] == ["viewer.css", "viewer.js"]
    for name in files:
        answer = viewer.client.get(name)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_an_error_that_nobody_expects_shows_and_logs_no_content(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("words of a conversation")

    monkeypatch.setattr(viewer.site.journal, "list_threads", fail)
    answer = TestClient.get(viewer.client, "/")
    assert answer.status_code == 500
    assert "words" not in answer.text
    assert "words" not in caplog.text
    assert "RuntimeError" in caplog.text
