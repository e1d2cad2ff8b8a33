"""What the demo does on its stage, act by act, each answer checked against the rows that are known."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from lakepass.cli.demo.stage import BUCKET, Stage
from lakepass.cli.demo.tables import ORDERS, RETURNS, SALARIES, TABLES, DemoTable
from lakepass.reader.credentials import AwsKeys
from lakepass.reader.errors import DeltaError

if TYPE_CHECKING:
    from lakepass.reader import SharingClient


@dataclass
class Show:
    """Tells what happens, and remembers what went wrong."""

    console: Console
    wrong: list[str] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)

    def act(self, title: str) -> None:
        """Begin a part."""
        self._started = time.monotonic()
        self.console.print(f"\n[bold]{title}[/bold]")

    def say(self, text: str) -> None:
        """A line of what happens."""
        self.console.print(f"  {text}", highlight=False)

    def check(self, good: bool, text: str) -> None:
        """A line with a verdict."""
        elapsed = time.monotonic() - self._started
        mark = "[green]✓[/green]" if good else "[bold red]✗ wrong:[/bold red]"
        self.console.print(f"  {mark} {text} [dim]{elapsed:.1f} s[/dim]", highlight=False)
        if not good:
            self.wrong.append(text)
        self._started = time.monotonic()


def provide(show: Show, stage: Stage) -> None:
    """The provider shares two tables with a recipient and keeps a third for itself."""
    show.act("A provider shares tables in place")

    def run(*arguments: str) -> str:
        show.say(f"[cyan]$ lakepass {shlex.join(arguments)}[/cyan]")
        return stage.lakepass(*arguments)

    for table in TABLES:
        run("table", "add", table.name, f"s3://{BUCKET}/{table.directory}", "--access", ",".join(table.modes))
    run("recipient", "add", "ann", "--share", "sales")
    run("token", "issue", "ann", "--output", stage.profile.name)
    show.check(stage.profile.exists(), f"ann can be sent her profile file, {stage.profile.name}")


def list_shares(show: Show, client: SharingClient) -> None:
    """What the recipient sees is what was granted, and nothing else."""
    show.act("The recipient lists what is shared with her")
    shown = sorted(str(table) for table in client.all_tables())
    for name in shown:
        show.say(name)
    granted = sorted(table.name for table in (ORDERS, RETURNS))
    show.check(shown == granted, "the two granted tables; the third is not there for her")


def read_directory(show: Show, client: SharingClient) -> None:
    """`dir` mode: a credential for the table's directory, and the native reader."""
    show.act(f"{ORDERS.name} by its directory, with the native reader")
    table = client.table(ORDERS.name)
    credential = table.credential()
    show.say(
        f"a credential for [bold]{credential.location}[/bold], read-only, until "
        f"{credential.expires_at:%H:%M:%S} UTC"
    )
    rows = table.to_arrow()
    show.check(table.access == "dir" and _same(rows, ORDERS), f"{rows.num_rows:,} rows, as they were written")
    scan = table.snapshot().scan(["id", "amount"], "country = 'DE' and amount > 99")
    found, wanted = scan.to_arrow(), _expected_filter()
    show.check(
        bool(found.sort_by("id").equals(wanted)),
        f"filter country = 'DE' and amount > 99: {found.num_rows} rows from {scan.files().num_rows} of "
        f"{table.snapshot().scan().files().num_rows} files",
    )


def read_with_deltalake(show: Show, client: SharingClient) -> None:
    """The deltalake package on the same credential, which it renews by itself."""
    show.act("The same with the deltalake package")
    rows = client.table(ORDERS.name).deltalake().to_pyarrow_table()
    show.check(
        _same(rows, ORDERS), f"{rows.num_rows:,} rows, on storage options from table.storage_options()"
    )


def read_with_spark(show: Show, stage: Stage) -> None:
    """The data source in PySpark, which needs no jars."""
    show.act("The same with PySpark")
    with _standard_error_to(stage.folder / "spark.log"):
        try:
            from lakepass.spark_conf import lakepass_session, register

            spark = lakepass_session(app="lakepass-demo", master="local[2]", jars="none")
        except (ImportError, DeltaError) as missing:
            show.say(f"[yellow]not shown:[/yellow] {missing}")
            return
        try:
            register(spark)
            rows = spark.read.format("lakepass").load(f"{stage.profile}#{ORDERS.name}").toArrow()
        finally:
            spark.stop()
    show.check(_same(rows, ORDERS), f"{rows.num_rows:,} rows by spark.read.format('lakepass')")


@contextmanager
def _standard_error_to(file: Path) -> Iterator[None]:
    """Send what Java prints at its start to a file: it is not part of the show."""
    sys.stderr.flush()
    kept = os.dup(2)
    with file.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def read_urls(show: Show, client: SharingClient) -> None:
    """A table that offers only `url`."""
    show.act(f"{RETURNS.name}, which is offered by pre-signed URLs only")
    table = client.table(RETURNS.name)
    rows = table.to_arrow()
    show.check(table.access == "url" and _same(rows, RETURNS), f"{rows.num_rows} rows, by the fallback")


def attack(show: Show, stage: Stage, client: SharingClient) -> None:
    """The vended credential, used for what it is not for."""
    from botocore.exceptions import ClientError

    show.act(f"The credential for {ORDERS.name}, used for something else")
    keys = client.table(ORDERS.name).credential().keys
    assert isinstance(keys, AwsKeys)
    s3 = stage.store.s3(keys)
    own, sibling = f"{ORDERS.directory}/", f"{SALARIES.directory}/"
    readable = s3.list_objects_v2(Bucket=BUCKET, Prefix=own)["KeyCount"]
    show.check(readable > 0, f"list {own}: {readable} objects (what it is for)")
    log = "_delta_log/00000000000000000000.json"
    attempts: list[tuple[str, Callable[[], Any]]] = [
        (f"read {sibling}{log}", lambda: s3.get_object(Bucket=BUCKET, Key=sibling + log)),
        (f"list {sibling}", lambda: s3.list_objects_v2(Bucket=BUCKET, Prefix=sibling)),
        (f"list the bucket {BUCKET}", lambda: s3.list_objects_v2(Bucket=BUCKET)),
        (
            f"write {own}evil.parquet",
            lambda: s3.put_object(Bucket=BUCKET, Key=f"{own}evil.parquet", Body=b"x"),
        ),
        (f"delete {own}{log}", lambda: s3.delete_object(Bucket=BUCKET, Key=own + log)),
    ]
    for what, attempt in attempts:
        try:
            attempt()
        except ClientError as refusal:
            status = refusal.response["ResponseMetadata"]["HTTPStatusCode"]
            show.check(
                status == 403, f"{what}: the store answers {status} {refusal.response['Error']['Code']}"
            )
        else:
            show.check(False, f"{what}: the store allowed it")


def audit(show: Show, stage: Stage) -> None:
    """Every vend left a row."""
    show.act("What the provider sees of it")
    rows = json.loads(stage.lakepass("audit", "--json"))
    vends = [row for row in rows if row["recipient"] == "ann"]
    for row in vends[:3]:
        show.say(
            f"{row['time'][11:19]}  {row['recipient']}  {row['table']}  {row['location']}  {row['outcome']}"
        )
    show.check(bool(vends), f"{len(vends)} rows in the audit for ann")


def perform(console: Console, stage: Stage) -> list[str]:
    """Every act in turn; gives what was wrong."""
    from lakepass.reader import SharingClient

    show = Show(console)
    provide(show, stage)
    client = SharingClient(stage.profile)
    list_shares(show, client)
    read_directory(show, client)
    read_with_deltalake(show, client)
    read_with_spark(show, stage)
    read_urls(show, client)
    attack(show, stage, client)
    audit(show, stage)
    return show.wrong


def _same(rows: pa.Table, table: DemoTable) -> bool:
    """Whether the same rows came back, in whatever order and chunks."""
    names = table.rows.column_names
    if sorted(rows.column_names) != sorted(names):
        return False
    key = names[0]
    ordered = rows.select(names).sort_by(key).combine_chunks()
    return bool(ordered.cast(table.rows.schema).equals(table.rows.sort_by(key).combine_chunks()))


def _expected_filter() -> pa.Table:
    wanted = (pc.field("country") == "DE") & (pc.field("amount") > Decimal("99.00"))
    return ORDERS.rows.filter(wanted).select(["id", "amount"]).sort_by("id")
