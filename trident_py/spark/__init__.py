"""Topologies on Spark. The only package of trident_py that imports pyspark."""

from .cluster import SparkCluster

__all__ = ["SparkCluster"]
