"""Sound without speech is a function of its seed."""

import numpy as np
import pytest

from devices.noises import KINDS, RATE_HZ, noise


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_kind_is_made_from_its_seed(kind: str) -> None:
    one = noise(kind, 2.5, seed=1)
    assert one.shape == (round(2.5 * RATE_HZ),)
    assert one.dtype == np.float32
    assert np.array_equal(one, noise(kind, 2.5, seed=1))
    peak = float(np.max(np.abs(one)))
    if kind == "silence":
        assert peak == 0.0
        return
    assert 0.009 < peak < 0.71
    assert not np.array_equal(one, noise(kind, 2.5, seed=2))


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(KeyError):
        noise("speech", 1.0, seed=0)
