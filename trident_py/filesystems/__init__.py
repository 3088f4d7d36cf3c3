"""Local files, HDFS, S3, Google Cloud Storage and Azure behind one interface, `base.FileSystem`."""
