"""One running installation for all tests that only send to it; each of them has meetings of its own."""

from collections.abc import Iterator
from typing import Final

import pytest

from flows.installation import Installation
from tests.flows.live_chain import Chain

# Words are compared, and the machine that runs the tests may be busy: nothing is left out because it is late.
SETTINGS: Final = {
    "MINUTED_PARTIALS": "false", "MINUTED_STREAM_IDLE_S": "3", "MINUTED_SHED_AFTER_S": "86400",
}  # fmt: skip


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Embedded broker and both flows, by TCP, as processes of their own."""
    with Installation(tmp_path_factory.mktemp("chain"), settings=SETTINGS) as installation:
        running = Chain(installation)
        yield running
        running.close()
