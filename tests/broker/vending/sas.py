"""What a SAS opens, by Azure Storage's documented rules, from the parameters in the token itself.

Our reading of "Create a user delegation SAS": `sr=d` covers the directory whose path is the first `sdd`
segments of the request's path, and all below it; the signature is over that directory's path; `sr=c` covers
the container.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from urllib.parse import parse_qs


def parameters(token: str) -> dict[str, str]:
    """The token's parameters, decoded."""
    return {name: values[0] for name, values in parse_qs(token, strict_parsing=True).items()}


def opens(token: str, key: str, account: str, container: str, name: str) -> bool:
    """Whether the token's signature holds for a request on the object `name`."""
    told = parameters(token)
    if told["sr"] == "c":
        resource = f"/blob/{account}/{container}"
    else:
        segments = name.split("/")
        depth = int(told["sdd"])
        if len(segments) < depth:
            return False
        resource = "/".join((f"/blob/{account}/{container}", *segments[:depth]))
    order = (
        "sp st se - skoid sktid skt ske sks skv saoid suoid scid skdutid sduoid sip spr sv sr - ses - - "
        "rscc rscd rsce rscl rsct"
    )
    fields = [resource if index == 3 else told.get(name, "") for index, name in enumerate(order.split())]
    digest = hmac.new(base64.b64decode(key), "\n".join(fields).encode(), hashlib.sha256).digest()
    return hmac.compare_digest(base64.b64encode(digest).decode(), told["sig"])
