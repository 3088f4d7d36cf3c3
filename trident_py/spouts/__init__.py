"""Sources of batches: the spout interfaces, the built-in spouts, and the code that drives them."""

from typing import TYPE_CHECKING

from ..needs import Needs
from ..replaced import answer
from ..tuples import RichSpoutBatchId
from .collectors import SpoutOutputCollector, WrongNumberOfValues
from .coordination import Coordination, Descriptor
from .emitters import TaskEmitter, make_emitter
from .feeder import FeederBatchSpout, FeederCommitterBatchSpout
from .files import FileSpout
from .fixed import FixedBatchSpout
from .inspection import SpoutNodeInfo, check_spout, is_finite, is_home, output_fields, partitions_of, snapshot
from .interfaces import (
    IBatchSpout,
    ICommitterTridentSpout,
    IRichSpout,
    ITridentDataSource,
    ITridentSpout,
    OutputFieldsDeclarer,
    SpoutContext,
)
from .metadata import MemoryMetadataStore, MetadataStore
from .partitioned import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout, ISpoutPartition
from .sparkspout import SparkSpout

__all__ = [
    "Coordination",
    "Descriptor",
    "FeederBatchSpout",
    "FeederCommitterBatchSpout",
    "FileSpout",
    "FixedBatchSpout",
    "IBatchSpout",
    "ICommitterTridentSpout",
    "IOpaquePartitionedTridentSpout",
    "IPartitionedTridentSpout",
    "IRichSpout",
    "ISpoutPartition",
    "ITridentDataSource",
    "ITridentSpout",
    "MemoryMetadataStore",
    "MetadataStore",
    "Needs",
    "OutputFieldsDeclarer",
    "RichSpoutBatchId",
    "SparkSpout",
    "SpoutContext",
    "SpoutNodeInfo",
    "SpoutOutputCollector",
    "TaskEmitter",
    "WrongNumberOfValues",
    "check_spout",
    "is_finite",
    "is_home",
    "make_emitter",
    "output_fields",
    "partitions_of",
    "snapshot",
]

if not TYPE_CHECKING:
    __getattr__ = answer(__name__)
