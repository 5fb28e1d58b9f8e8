"""Settings of commands that talk to a broker."""

from typing import Any, Final

from operators.settings import Settings, load_settings

PATIENCE_S: Final = 30.0
"""How long commands wait for a broker that does not answer."""


def settings_of(brokers: str | None) -> Settings:
    """The settings in force, with the client settings that a broker of ``minuted broker up`` needs.

    Raises:
        SettingsProblem: a setting cannot be used.
    """
    from .standing_broker import broker_info

    given: dict[str, Any] = {} if brokers is None else {"bootstrap_servers": brokers}
    settings = load_settings(**given)
    info = broker_info()
    if (
        info is not None
        and info.bootstrap == settings.bootstrap_servers
        and settings.fetch_wait_max_ms is None
    ):
        wait = info.client_overrides.get("fetch.wait.max.ms")
        given["fetch_wait_max_ms"] = None if wait is None else int(wait)
        settings = load_settings(**given)
    return settings
