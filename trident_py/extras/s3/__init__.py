"""Files in S3 and the other object stores that pyarrow knows."""
