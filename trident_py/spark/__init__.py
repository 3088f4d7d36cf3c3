"""Topologies on Spark. The only package of trident_py that imports pyspark."""

from .cluster import SparkCluster, StormSubmitter

__all__ = ["SparkCluster", "StormSubmitter"]
