"""An OTLP/HTTP receiver for the tests: real requests over TCP, decoded from protobuf."""

import gzip
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """An OTLP/HTTP receiver on a port of its own: keeps the spans and the last value of each metric."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: dict[bytes, str] = {}
        self.metrics: dict[tuple[str, str], float] = {}
        self.status = 200
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if collector.status == 200:
                    collector.take(self.path, body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = next(
                    a.value.string_value for a in resource.resource.attributes if a.key == "service.name"
                )
                for scope in resource.scope_spans:
                    self.spans += scope.spans
                    self.services |= {span.span_id: service for span in scope.spans}
        else:
            assert path == "/v1/metrics"
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metric in (m for scope in resource.scope_metrics for m in scope.metrics):
                    data = getattr(metric, str(metric.WhichOneof("data")))
                    for point in data.data_points:
                        labels = ",".join(a.value.string_value for a in point.attributes)
                        value = (
                            point.count
                            if hasattr(point, "bucket_counts")
                            else point.as_int or point.as_double
                        )
                        self.metrics[metric.name, labels] = value

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def eventually(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether the condition comes to hold in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
