"""Random histories in all four dialects, and every sample transcript: the providers take each request.

A finding names its seed; ``python tests/validation/campaign.py --replay SEED`` shows what was done and sent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from validation.campaign import findings
from validation.samples import sample_problems, sources

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_requests_of_random_histories_are_valid(first: int) -> None:
    assert [finding for seed in range(first, first + 20) for finding in findings(seed)] == []


@pytest.mark.deep
@pytest.mark.parametrize("first", range(0, 10_000, 250))
def test_requests_of_thousands_of_random_histories_are_valid(first: int) -> None:
    assert [finding for seed in range(first, first + 250) for finding in findings(seed)] == []


def test_requests_of_sample_transcripts_are_valid() -> None:
    found = {str(path): list(sample_problems(name, path)) for name, path in sources(DATA)}
    assert len(found) > 50
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.deep
def test_requests_in_the_middle_of_samples_are_valid(seed_fixtures: Path) -> None:
    samples = [*sources(DATA), *sources(seed_fixtures)]
    found = {str(path): list(sample_problems(name, path, places=8)) for name, path in samples}
    assert {name: problems for name, problems in found.items() if problems} == {}
