"""Pre-signed URLs of S3: the broker's own signing beside boto3's, in processor time per URL.

    python -m bench.signing [--urls 20000]

Both sign the same keys with the same credential; that they sign the same is a test's to say
(`tests/broker/test_signing.py`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import boto3
from botocore.config import Config

from lakepass.broker.signing.s3 import S3Signer
from lakepass.reader.credentials import AwsKeys, Credential, StoreSettings

KEYS = AwsKeys("AKIALOCALEXAMPLE", "local-secret", "local-session-token" * 20)


def _microseconds(sign: Callable[[Sequence[str]], object], keys: Sequence[str]) -> float:
    """For one URL, in the best of five rounds."""
    rounds = []
    for _ in range(5):
        begun = time.process_time()
        sign(keys)
        rounds.append(time.process_time() - begun)
    return min(rounds) / len(keys) * 1e6


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--urls", type=int, default=20_000)
    names = [f"sales/orders/day=2024-01-01/part-{n:05d}.parquet" for n in range(arguments.parse_args().urls)]
    store = StoreSettings(region="eu-central-1")
    ours = S3Signer(Credential("s3://lake/sales/orders", KEYS, None, store), "lake", timedelta(hours=1))
    client = boto3.client(
        "s3",
        region_name="eu-central-1",
        aws_access_key_id=KEYS.access_key_id,
        aws_secret_access_key=KEYS.secret_access_key,
        aws_session_token=KEYS.session_token,
        config=Config(signature_version="s3v4"),
    )

    def theirs(keys: Sequence[str]) -> None:
        for key in keys:
            client.generate_presigned_url("get_object", {"Bucket": "lake", "Key": key})

    own, boto = _microseconds(ours.sign, names), _microseconds(theirs, names[: len(names) // 10])
    print(f"lakepass {own:6.1f} µs a URL\nboto3    {boto:6.1f} µs a URL\n{boto / own:.0f} times as fast")


if __name__ == "__main__":
    main()
