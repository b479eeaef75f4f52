"""Secrets in conversations: found, not invented, replaced on export, and erased in place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sessiontree as st
from cli_shell import Shell
from sessiontree.transfer.formats import export_sessions
from sessiontree.transfer.secrets import RULES, find_secrets, redact, scan

# Written in pieces, so that no scanner takes this file for a leak.
NOISE = "aZ3kQ9xLm2Wv7RtY5uP1sD8fGh4JcB6nE0TqXoKi"
SECRETS = {
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\n" + NOISE * 3 + "\n-----END RSA PRIVATE KEY-----",
    "anthropic-key": "sk-ant-" + "api03-" + NOISE,
    "openai-key": "sk-" + "proj-" + NOISE,
    "github-token": "ghp" + "_" + NOISE[:36],
    "gitlab-token": "glpat" + "-" + NOISE[:20],
    "aws-access-key": "AKIA" + "IOSFODNN7QQQQQQQ".replace("0", "A").replace("7", "7")[:16],
    "aws-secret-key": "aws_secret_access_key = " + NOISE,
    "google-key": "AIza" + NOISE[:35],
    "slack-token": "xoxb" + "-1234567890-" + NOISE[:12],
    "slack-webhook": "https://hooks.slack.com/" + "services/T000/B000/" + NOISE[:24],
    "stripe-key": "sk_" + "live_" + NOISE[:24],
    "npm-token": "npm" + "_" + NOISE[:36],
    "pypi-token": "pypi" + "-AgEIcHlwaS5vcmc" + NOISE,
    "huggingface-token": "hf" + "_" + NOISE[:34],
    "sendgrid-key": "SG." + NOISE[:22] + "." + NOISE,
    "digitalocean-token": "dop" + "_v1_" + "0123456789abcdef" * 4,
    "azure-storage-key": "AccountKey=" + NOISE * 2 + "abcdef==",
    "json-web-token": "eyJ" + NOISE[:20] + ".eyJ" + NOISE[:20] + "." + NOISE,
    "password-in-url": "postgresql://me:hunter22secret@db/shop",
    "bearer-token": "Authorization: Bearer " + NOISE,
    "assigned-secret": 'api_key = "' + NOISE[:24] + '"',
}


def test_every_rule_has_an_example() -> None:
    assert set(SECRETS) == set(RULES)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("around", ["{}", "text before {} and after", '{{"a": "{}", "b": 1}}'])
def test_a_secret_is_found_by_its_rule_and_redacted(rule: str, around: str) -> None:
    text = around.format(SECRETS[rule])
    assert [found.rule for found in find_secrets(text)] == [rule]
    assert f"[redacted: {rule}]" in redact(text)
    assert NOISE not in redact(text)


@pytest.mark.parametrize("rule", RULES)
def test_json_stays_json(rule: str) -> None:
    text = json.dumps({"said": f"look: {SECRETS[rule]} ok", "n": 1})
    assert json.loads(redact(text))["n"] == 1
    assert "[redacted:" in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "the password is set in the environment",
        'password = "${DB_PASSWORD}"',
        'api_key: "your-api-key-goes-here"',
        "postgresql://user:<password>@host/db",
        "commit 8f3a1c2d4e5f60718293a4b5c6d7e8f901234567",
        "token_count: 12345678901234567890",
        "uuid 11111111-2222-4333-8444-555555555555",
        'secret_name = "the-name-of-it"',
        "sk-learn and sk-image are libraries",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
    ],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert find_secrets(text) == []


def test_secrets_are_found_wherever_they_stand_in_an_entry() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        journal.append(
            "t", st.assistant(calls=[st.call("c", "bash", json.dumps({"command": SECRETS["github-token"]}))])
        )
        journal.append("t", st.tool_result("c", SECRETS["private-key"]))
        journal.append("t", st.Custom(name="raw", origin={"raw": {"env": SECRETS["google-key"]}}))
        found = list(scan(journal, "t"))
    assert [one.rule for one in found] == ["github-token", "private-key", "google-key"]
    assert all(NOISE[:10] not in one.shown for one in found)


@pytest.mark.parametrize("name", ["native", "claude-code", "openai-jsonl", "pi"])
def test_an_export_can_be_redacted(name: str, tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        journal.append("t", st.user(f"use {SECRETS['openai-key']} please"))
        export_sessions(journal, tmp_path / "out", format=name, change=redact)
    body = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"[redacted: openai-key]" in body
    assert NOISE.encode() not in body


def test_the_command_finds_and_erases(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    thread = shell.json("new", "talk")["thread"]["id"]
    shell("append", thread, f"here: {SECRETS['stripe-key']}")
    shell("append", thread, "nothing here")
    (found,) = shell.json("secrets", "scan")["secrets"]
    assert found["rule"] == "stripe-key"
    shell("secrets", "scan", "--erase", "--yes")
    assert shell.json("secrets", "scan")["secrets"] == []
    assert NOISE[:20].encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.db*") if path.is_file())
