"""Topologies on Spark. The only package of trident_py that imports pyspark."""

from .cluster import SparkCluster
from .submitter import StormSubmitter

__all__ = ["SparkCluster", "StormSubmitter"]
