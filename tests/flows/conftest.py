"""One running installation for all tests that only send to it; each of them has meetings of its own."""

from collections.abc import Iterator

import pytest

from flows.installation import Installation
from tests.flows.live_chain import Chain


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Embedded broker and both flows, by TCP, as processes of their own."""
    settings = {"MINUTED_PARTIALS": "false", "MINUTED_STREAM_IDLE_S": "3"}
    with Installation(tmp_path_factory.mktemp("chain"), settings=settings) as installation:
        running = Chain(installation)
        yield running
        running.close()
