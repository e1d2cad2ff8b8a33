"""Running the application: one process, one event loop, until it is told to stop.

On SIGTERM the listener closes, streams under way get `shutdown_timeout` to finish, and the process ends
with status 0.
"""

from __future__ import annotations

import signal
import sys

import uvicorn

from lakepass.broker.access_log import AccessLog
from lakepass.broker.app import create_app
from lakepass.broker.config import Settings
from lakepass.broker.http1 import http1_protocol
from lakepass.broker.logs import configure_logs

# Threads that write long answers hand the interpreter to the event loop this often, so that a list is
# answered within milliseconds while they run.
_SWITCH_INTERVAL = 0.001

# Seconds for which an idle connection is kept: longer than the load balancer of terraform/aws keeps one
# (120 s), which would otherwise send a request down a connection that is just being closed, and answer 502.
KEEP_ALIVE = 150


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    configure_logs(settings.server.log_format)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    # Once it has stopped, uvicorn raises the signal again for whoever handled it before; a default handler
    # would then end the process as killed, which an orchestrator counts as a crash.
    signal.signal(signal.SIGTERM, lambda *_: None)
    proxies = settings.server.trusted_proxies
    uvicorn.run(
        create_app(settings, AccessLog(sys.stderr.buffer, settings.server.log_format)),
        http=http1_protocol(settings.server.send_timeout),
        host=settings.server.host,
        port=settings.server.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies) or None,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.server.shutdown_timeout.total_seconds()),
        backlog=2048,
    )
