"""The S3 of the tests: it keeps objects while it runs, and is gone when it is killed."""

from __future__ import annotations

import pytest
from pyarrow.fs import S3FileSystem

from testbed.s3 import S3Server


def test_it_keeps_objects_until_it_is_killed_and_stays_at_its_port(s3: S3Server) -> None:
    with S3Server() as server:
        client = S3FileSystem(**server.storage, allow_bucket_creation=True)
        client.create_dir("bucket")
        with client.open_output_stream("bucket/a/b.txt") as file:
            file.write(b"words")
        with client.open_input_file("bucket/a/b.txt") as file:
            assert file.read() == b"words"
        assert server.storage["endpoint_override"] != s3.storage["endpoint_override"]
        server.kill()
        with pytest.raises(OSError, match="NETWORK_CONNECTION"):
            client.get_file_info("bucket/a/b.txt")
        server.restart()
        assert client.get_file_info("bucket").type.name == "NotFound"
