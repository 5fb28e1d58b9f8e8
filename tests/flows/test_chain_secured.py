"""The chain on an Apache Kafka that wants encryption and a login."""

import datetime
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from flows.brokers import ApacheKafka, free_port
from flows.installation import ROOT, Installation
from operators.settings import load_settings
from tests.flows.live_chain import Chain, meeting_folder

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

MEETING = "behind-a-lock"


def certificate(folder: Path) -> tuple[Path, str]:
    """A certificate of 127.0.0.1 that signs itself: its file, and certificate and key as Kafka takes them."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM).decode()
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    path = folder / "ca.pem"
    path.write_text(pem)
    (folder / "server.pem").write_text(secret + pem)
    return path, str(folder / "server.pem")


def secured(broker: ApacheKafka, port: int, store: str) -> None:
    """A second listener, with TLS and a login, beside the open one that the test itself reads from."""
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required user_minuted="
    listener = "listener.name.secure"
    settings = broker.properties
    controller = f"127.0.0.1:{broker._controller_port}"
    settings["listeners"] = (
        f"PLAINTEXT://{broker.bootstrap},CONTROLLER://{controller},SECURE://127.0.0.1:{port}"
    )
    settings["advertised.listeners"] = f"PLAINTEXT://{broker.bootstrap},SECURE://localhost:{port}"
    settings["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL"
    settings[f"{listener}.sasl.enabled.mechanisms"] = "PLAIN"
    settings[f"{listener}.plain.sasl.jaas.config"] = f'{login}"s3cret";'
    settings[f"{listener}.ssl.keystore.type"] = "PEM"
    settings[f"{listener}.ssl.keystore.location"] = store


def test_flows_and_devices_log_in(kafka_parts: None, tmp_path: Path) -> None:
    ca, store = certificate(tmp_path)
    lines = f"security.protocol=SASL_SSL\nssl.ca.location={ca}\nsasl.mechanism=PLAIN\nsasl.username=minuted\n"
    login = tmp_path / "kafka.properties"
    login.write_text(f"# of the test\n{lines}sasl.password=s3cret\n")
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(f"{lines}sasl.password=guess\n")
    port = free_port()
    locked = {"MINUTED_BOOTSTRAP_SERVERS": f"localhost:{port}", "MINUTED_KAFKA_CLIENT": str(login)}
    installation = Installation(tmp_path / "there", broker="kafka", settings=locked)
    assert isinstance(installation.broker, ApacheKafka)
    secured(installation.broker, port, store)
    with installation:
        chain = Chain(installation)
        folder = meeting_folder(tmp_path / "room", MEETING)

        def publish(client: Path) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "flows.cli", "publish", str(folder), "--speed", "max"]
            command += ["--meeting", MEETING]
            environment = installation.environment | {"MINUTED_KAFKA_CLIENT": str(client)}
            return subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
            )

        refused = publish(wrong)
        assert refused.returncode != 0
        assert "it refuses: " in refused.stderr and "Authentication failed" in refused.stderr
        assert "guess" not in refused.stderr and "Traceback" not in refused.stderr
        sent = publish(login)
        assert sent.returncode == 0, sent.stderr
        assert chain.minutes(MEETING).action_items
        for flow in installation.flows.values():
            assert "s3cret" not in flow.log.read_text()
        chain.close()
    assert "s3cret" not in repr(load_settings(kafka_client=login).link())
