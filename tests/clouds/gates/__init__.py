"""Gates: small servers that stand in front of an emulator and carry out the access rules it does not know.

Each is our reading of the cloud's documented rules and names the pages; none of it is the cloud itself.
"""
