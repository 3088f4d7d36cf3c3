"""FileSpout: files as batches, in local folders, HDFS and S3."""
