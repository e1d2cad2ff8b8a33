"""A profile with OAuth client credentials: the client fetches a token, and a new one before it ends."""

import os

from lakepass.reader import SharingClient

client = SharingClient(
    {
        "shareCredentialsVersion": 2,
        "type": "oauth_client_credentials",
        "endpoint": os.environ["SHARING_ENDPOINT"],
        "tokenEndpoint": os.environ["OAUTH_TOKEN_ENDPOINT"],
        "clientId": os.environ["OAUTH_CLIENT_ID"],
        "clientSecret": os.environ["OAUTH_CLIENT_SECRET"],
    }
)
for table in client.all_tables():
    print(table)
