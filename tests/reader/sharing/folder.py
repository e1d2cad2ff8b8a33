"""A sharing server for tests: Delta tables in local folders, by URLs that end when a test says so.

Written from the protocol text, apart from the broker, so that the client is not only tested against its own
project's server. Pages, refresh tokens, both formats, signed file URLs with ranges.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from lakepass.reader.data.deletion_vectors import Descriptor
from lakepass.reader.snapshot import Snapshot
from lakepass.reader.table import Table
from tests.reader.sharing.server import Asked, Reply, Server, as_json


class FolderShare:
    """Tables `s.d.<name>`, each a folder."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url_life = 3600.0
        self.page_files: int | None = None
        """Files on a page; None: one page, and `maxFiles` is not known here."""
        self.history = True
        self.refreshing = True
        self.files_read = 0
        self.file_origin = server.origin
        """Where the file URLs lead; a gate may stand there."""
        self._folders: dict[str, Path] = {}
        self._ended_before = 0.0
        self._lock = threading.Lock()

    def add(self, name: str, folder: Path, **extra: Any) -> None:
        """Share a table; `extra` is put into its metaData line (accessModes, location)."""
        self._folders[name] = folder
        path = f"/shares/s/schemas/d/tables/{name}"
        table = Table(folder)

        def metadata(asked: Asked) -> Reply:
            snapshot = table.snapshot()
            return self._lines(asked, snapshot, [], **extra)

        def query(asked: Asked) -> Reply:
            return self._query(asked, table, name, extra)

        self.server.on("GET", f"{path}/metadata", metadata)
        self.server.on("POST", f"{path}/query", query)
        self.server.on(
            "GET",
            f"{path}/version",
            lambda _: Reply(headers={"Delta-Table-Version": str(table.snapshot().version)}),
        )
        for file in folder.rglob("*"):
            if file.is_file() and "_delta_log" not in file.parts:
                relative = file.relative_to(folder).as_posix()
                self.server.on("GET", f"//files/{name}/{quote(relative)}", self._serve(file))

    def end_all_urls(self) -> None:
        """Every URL given out so far is refused from now on."""
        self._ended_before = time.time()

    def _query(self, asked: Asked, table: Table, name: str, extra: dict[str, Any]) -> Reply:
        body = asked.fields
        if "refreshToken" in body:
            version = int(body["refreshToken"])
        elif "version" in body:
            if not self.history:
                return as_json(
                    {"errorCode": "INVALID_PARAMETER_VALUE", "message": "no history is shared"}, 400
                )
            version = int(body["version"])
        elif "pageToken" in body:
            version = int(body["pageToken"].split(":")[0])
        else:
            version = table.snapshot().version
        snapshot = table.snapshot(version)
        files = self._files(snapshot, name, self._format(asked, snapshot) == "delta")
        end: dict[str, Any] = {}
        if body.get("includeRefreshToken") and self.refreshing:
            end["refreshToken"] = str(version)
        if self.page_files is not None:
            start = int(body.get("pageToken", "0:0").split(":")[1])
            page = files[start : start + self.page_files]
            if start + self.page_files < len(files):
                end["nextPageToken"] = f"{version}:{start + self.page_files}"
            files = page
        return self._lines(asked, snapshot, files, end, **extra)

    @staticmethod
    def _format(asked: Asked, snapshot: Snapshot) -> str:
        accepted = asked.headers.get("delta-sharing-capabilities", "")
        formats = accepted.partition("responseformat=")[2].partition(";")[0].split(",")
        advanced = snapshot.protocol.min_reader_version > 1
        return "delta" if "delta" in formats and (advanced or "parquet" not in formats) else "parquet"

    def _lines(
        self,
        asked: Asked,
        snapshot: Snapshot,
        files: list[dict[str, Any]],
        end: dict[str, Any] | None = None,
        **extra: Any,
    ) -> Reply:
        protocol, metadata = snapshot.protocol, snapshot.metadata
        shape = {
            "id": metadata.id,
            "format": {"provider": "parquet"},
            "schemaString": metadata.schema_string,
            "partitionColumns": list(metadata.partition_columns),
            "configuration": dict(metadata.configuration),
        }
        chosen = self._format(asked, snapshot)
        if chosen == "delta":
            fields: dict[str, Any] = {
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
            }
            if protocol.reader_features is not None:
                fields["readerFeatures"] = list(protocol.reader_features)
                fields["writerFeatures"] = list(protocol.writer_features or ())
            lines: list[dict[str, Any]] = [{"protocol": {"deltaProtocol": fields}}]
            lines.append({"metaData": {"deltaMetadata": shape, **extra}})
        else:
            lines = [{"protocol": {"minReaderVersion": 1}}, {"metaData": {**shape, **extra}}]
        lines += files
        if end is not None:
            lines.append({"endStreamAction": end})
        capabilities = f"responseformat={chosen}" + (
            ";includeendstreamaction=true" if end is not None else ""
        )
        headers = {
            "Content-Type": "application/x-ndjson; charset=utf-8",
            "Delta-Table-Version": str(snapshot.version),
            "delta-sharing-capabilities": capabilities,
        }
        return Reply(200, b"".join(json.dumps(line).encode() + b"\n" for line in lines), headers)

    def _files(self, snapshot: Snapshot, name: str, delta: bool) -> list[dict[str, Any]]:
        found = []
        for batch in snapshot.file_batches(stats="json"):
            for row in batch.to_pylist():
                url, end = self._signed(name, unquote(row["path"]))
                identity = hashlib.sha256(row["path"].encode()).hexdigest()
                values = dict(row["partition_values"] or [])
                common: dict[str, Any] = {
                    "partitionValues": values,
                    "size": row["size"],
                    "stats": row["stats"],
                }
                wrapper: dict[str, Any] = {"id": identity, "expirationTimestamp": end}
                if not delta:
                    found.append({"file": {**wrapper, **common, "url": url}})
                    continue
                add = {
                    **common,
                    "path": url,
                    "modificationTime": row["modification_time"],
                    "dataChange": True,
                }
                vector = row["deletion_vector"]
                if vector is not None:
                    add["deletionVector"] = self._vector(vector, name)
                    wrapper["deletionVectorFileId"] = hashlib.sha256(str(vector).encode()).hexdigest()
                found.append({"file": {**wrapper, "deltaSingleAction": {"add": add}}})
        return found

    def _vector(self, vector: dict[str, Any], name: str) -> dict[str, Any]:
        shape = {"sizeInBytes": vector["size"], "cardinality": vector["cardinality"]}
        if vector["offset"] is not None:
            shape["offset"] = vector["offset"]
        if vector["storage_type"] != "u":
            return {
                "storageType": vector["storage_type"],
                "pathOrInlineDv": vector["path_or_inline"],
                **shape,
            }
        fields = [
            vector[name] for name in ("storage_type", "path_or_inline", "offset", "size", "cardinality")
        ]
        descriptor = Descriptor(*fields)
        url, _ = self._signed(name, descriptor.relative_path())
        return {"storageType": "p", "pathOrInlineDv": url, **shape}

    def _signed(self, name: str, relative: str) -> tuple[str, int]:
        now = time.time()
        end = int((now + self.url_life) * 1000)
        url = f"{self.file_origin}/files/{name}/{quote(relative)}"
        return f"{url}?end={end}&made={now}&X-Amz-Signature=local-signature", end

    def _serve(self, file: Path) -> Any:
        def answer(asked: Asked) -> Reply:
            with self._lock:
                self.files_read += 1
            made, end = float(asked.query["made"]), int(asked.query["end"])
            if made < self._ended_before or end < time.time() * 1000:
                return Reply(
                    403, b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
                )
            data = file.read_bytes()
            wanted = asked.headers.get("range")
            if wanted is None:
                return Reply(200, data)
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last) + 1 if last else None]
            return Reply(
                206, part, {"Content-Range": f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"}
            )

        return answer
