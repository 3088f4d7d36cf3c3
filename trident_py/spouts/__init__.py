"""Sources of batches: the spout interfaces, the built-in spouts, and the code that drives them."""

from typing import TYPE_CHECKING

from ..entry_points import answer, names_of
from ..model.requirements import Needs
from ..tuples import RichSpoutBatchId
from .collectors import SpoutOutputCollector, WrongNumberOfValues
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
from .partitioned import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout, ISpoutPartition
from .sparkspout import SparkSpout

if TYPE_CHECKING:
    from ..checkpoints.metadata_store import MemoryMetadataStore, MetadataStore
    from ..extras.file_spout.spout import FileSpout
    from .coordination import Coordination, Descriptor
    from .emitters import TaskEmitter, make_emitter

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
    __getattr__ = answer(
        __name__,
        {
            "Coordination": "coordination",
            "Descriptor": "coordination",
            "FeederBatchSpout": ".testing.feeder",
            "FeederCommitterBatchSpout": ".testing.feeder",
            "FileSpout": names_of(__name__, "file_spout"),
            "FixedBatchSpout": ".testing.fixed_batches",
            "MemoryMetadataStore": ".checkpoints.metadata_store",
            "MetadataStore": ".checkpoints.metadata_store",
            "TaskEmitter": "emitters",
            "make_emitter": "emitters",
        },
    )
