"""valkey-glide as a driver (see ../README.md): valkey_glide.py PORT RESP SECRET"""
from importlib.metadata import version

from glide_sync import (Batch, GlideClient, GlideClientConfiguration, Logger, LogLevel, NodeAddress, ProtocolVersion,
                        ServerCredentials)

import driver

Logger.init(LogLevel.OFF)  # it would write to standard output
client = GlideClient.create(GlideClientConfiguration(
    [NodeAddress("127.0.0.1", driver.port)], request_timeout=10000,
    credentials=ServerCredentials(driver.secret) if driver.secret else None,
    protocol=ProtocolVersion.RESP3 if driver.resp == 3 else ProtocolVersion.RESP2))


def many(commands, transaction):
    batch = Batch(is_atomic=transaction)
    for words in commands:
        batch.custom_command(words)
    return client.exec(batch, raise_on_error=transaction)


driver.run("valkey-glide", version("valkey-glide-sync"), client.custom_command, many)
