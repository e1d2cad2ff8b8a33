"""A table's Spark settings as text: what `lakepass spark-conf` prints.

Settings of a whole session serve one table per bucket or account; `read_table` passes the same keys to one
read. They are for jobs whose code cannot be changed. Secrets are left out unless they are asked for.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence

from lakepass.reader.errors import DeltaError
from lakepass.spark_conf.keys import explained
from lakepass.spark_conf.opening import Reference
from lakepass.spark_conf.scoped import path_and_options, shared_directory
from lakepass.spark_conf.session import installed_pyspark, session_settings

_SECRET = re.compile(
    r"(access\.key|secret\.key|session\.token|auth\.token|fixed\.token|oauth\.token|context\.id)"
)
_HIDDEN = "HIDDEN"


def table_text(text: str, form: str, *, renew: bool = True, show_secrets: bool = False) -> str:
    """The settings for the table that `text` names, as `properties`, `submit` arguments or `json`."""
    reference = Reference(text)
    opened = shared_directory(reference)
    path, options = path_and_options(opened, reference, secrets.token_bytes(32), renew=renew)
    conf = {
        f"spark.hadoop.{key}": value if show_secrets or not _SECRET.search(key) else _HIDDEN
        for key, value in options.items()
    }
    notes = [f'{opened.name}: spark.read.format("delta").load("{path}")']
    if not show_secrets:
        notes.append(f"{_HIDDEN} stands for what --show-secrets prints")
    return _text(conf, form, notes, {key: explained(key) for key in conf})


def session_text(form: str, clouds: Sequence[str]) -> str:
    """The settings of a session that reads shared tables: jars, extensions, redaction."""
    conf = session_settings(installed_pyspark(), clouds=clouds)
    return _text(conf, form, ["a session that reads shared tables"], {})


def _text(conf: Mapping[str, str], form: str, notes: Sequence[str], comments: Mapping[str, str]) -> str:
    if form == "json":
        return json.dumps(conf, indent=2) + "\n"
    if form == "submit":
        return " ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in conf.items()) + "\n"
    if form != "properties":
        raise DeltaError(f"{form!r} is not a form of settings: use properties, submit or json.")
    lines = [f"# {note}" for note in notes]
    for key, value in conf.items():
        lines += [f"# {comments[key]}", f"{key} {value}"] if key in comments else [f"{key} {value}"]
    return "\n".join(lines) + "\n"
