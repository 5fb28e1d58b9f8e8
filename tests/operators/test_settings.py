"""Settings from variables: what is taken, and the one line for what is not."""

from pathlib import Path

import pytest

from operators.settings import Settings, SettingsProblem, load_settings


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith("MINUTED_"):
            monkeypatch.delenv(name)


def test_defaults_need_nothing() -> None:
    settings = load_settings()
    assert settings.bootstrap_servers == "127.0.0.1:9092"
    assert settings.link().overrides == {}


def test_variables_and_what_is_given_on_top(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MINUTED_SHARDS", "8")
    monkeypatch.setenv("MINUTED_TOPIC_PREFIX", "board.")
    monkeypatch.setenv("MINUTED_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("MINUTED_FETCH_WAIT_MAX_MS", "5")
    settings = load_settings(bootstrap_servers="b:1,c:2")
    link = settings.link()
    assert (link.bootstrap, link.names.prefix, link.names.shards) == ("b:1,c:2", "board.", 8)
    assert link.overrides == {"fetch.wait.max.ms": 5}
    assert settings.state_dir == tmp_path


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MINUTED_SHARDS", "0", "MINUTED_SHARDS is '0': input should be greater than or equal to 1"),
        ("MINUTED_SHARDS", "many", "MINUTED_SHARDS is 'many': input should be a valid integer"),
        ("MINUTED_PARTIALS", "perhaps", "MINUTED_PARTIALS is 'perhaps': input should be a valid boolean"),
        ("MINUTED_STREAM_IDLE_S", "-1", "MINUTED_STREAM_IDLE_S is '-1': input should be greater than 0"),
        ("MINUTED_STREAM_IDLE_S", "nan", "MINUTED_STREAM_IDLE_S is 'nan': input should be"),
        ("MINUTED_MEETING_IDLE_S", "inf", "MINUTED_MEETING_IDLE_S is 'inf': input should be a finite number"),
        ("MINUTED_SPEECH_DEVICE", "gpu", "MINUTED_SPEECH_DEVICE is 'gpu': input should be 'cpu' or 'cuda'"),
        ("MINUTED_KEYS", "", "MINUTED_KEYS is '': name a folder, or leave it unset"),
        (
            "MINUTED_TOPIC_PREFIX",
            "a b",
            "MINUTED_TOPIC_PREFIX is 'a b': use letters, digits, '.', '_' and '-' only",
        ),
        ("MINUTED_BOOTSTRAP_SERVERS", "", "MINUTED_BOOTSTRAP_SERVERS is '': use host:port"),
        ("MINUTED_BOOTSTRAP_SERVERS", "broker", "MINUTED_BOOTSTRAP_SERVERS is 'broker': use host:port"),
        ("MINUTED_BOOTSTRAP_SERVERS", "b:1,,c:2", "MINUTED_BOOTSTRAP_SERVERS is 'b:1,,c:2': use host:port"),
        ("MINUTED_BOOTSTRAP_SERVERS", "b:port", "MINUTED_BOOTSTRAP_SERVERS is 'b:port': use host:port"),
        ("MINUTED_BOOTSTRAP_SERVERS", "b:99999", "MINUTED_BOOTSTRAP_SERVERS is 'b:99999': use host:port"),
        (
            "MINUTED_SHARD",
            "4",
            "MINUTED_SHARD is no setting of minuted (MINUTED_SHARDS?); `minuted doctor` lists them",
        ),
        ("MINUTED_XYZZY", "4", "MINUTED_XYZZY is no setting of minuted; `minuted doctor` lists them"),
    ],
)
def test_what_cannot_be_used_is_one_line_with_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsProblem) as caught:
        load_settings()
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("address", ["h:1", "10.0.0.1:9092,10.0.0.2:9092", "[::1]:9092", "a-b.example:9092"])
def test_addresses_that_can_be_used(address: str) -> None:
    assert load_settings(bootstrap_servers=address).link().bootstrap == address


def test_a_file_set_to_nothing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MINUTED_RULES", "MINUTED_MASTER_KEY_FILE", "MINUTED_MODEL", "MINUTED_VERIFIER"):
        monkeypatch.setenv(name, "")
    assert (load_settings().model, load_settings().verifier) == ("released", "released")
    assert (load_settings().rules, load_settings().master_key_file) == (None, None)


def test_every_setting_says_what_it_is_for() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def client_file(folder: Path, text: str) -> Path:
    path = folder / "kafka.properties"
    path.write_text(text, encoding="utf-8")
    return path


def test_encryption_and_login_reach_every_client(tmp_path: Path) -> None:
    text = "# ours\n\nsecurity.protocol = SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=a\nsasl.password=b=c #1\n"
    link = load_settings(kafka_client=client_file(tmp_path, text)).link()
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "a",
        "sasl.password": "b=c #1",
    }
    for config in (link.client(), link.consumer(), link.producer()):
        assert login.items() <= config.items()
    assert "b=c" not in repr(link)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("security.protocol SSL\n", "line 1 is not name=value"),
        ("\n# x\nSASL.password=hidden\n", "line 3 is not name=value"),
        ("acks=0\n", "line 1: acks is not left to this file, which is for encryption and login"),
        ("bootstrap.servers=b:1\n", "line 1: bootstrap.servers is not left to this file"),
        ("enable.idempotence=false\n", "line 1: enable.idempotence is not left to this file"),
        ("ssl.colour=red\n", 'the Kafka client refuses it: No such configuration property: "ssl.colour"'),
        ("security.protocol=rot13\n", "the Kafka client refuses it: Invalid value"),
        (
            "security.protocol=SSL\nssl.key.password=hidden\nssl.key.location=/nowhere\n",
            "the Kafka client refuses it: ",
        ),
        ("\udcff", "it is not text in UTF-8"),
    ],
)
def test_a_client_file_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "kafka.properties"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SettingsProblem) as caught:
        load_settings(kafka_client=path)
    assert f"MINUTED_KAFKA_CLIENT is {str(path)!r}: {said}" in str(caught.value)
    assert "hidden" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_client_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsProblem, match=r"it cannot be read \(No such file or directory\)"):
        load_settings(kafka_client=tmp_path / "none")
