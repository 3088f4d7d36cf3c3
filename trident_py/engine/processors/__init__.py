"""Processors: what each kind of node does to the tuples of one partition of one batch, on either cluster."""

from .aggregate import Aggregate, Part
from .answer import Answer
from .base import NodeContext, Processor
from .dead_letters import LETTER, ChangedBatch, DeadLetters, Excluded, Share
from .each import Collect, Each, Keep, Peek, Project, Replace
from .join import Join, Joiner, Merge, MultiReduce
from .states import PartitionPersist, StateQuery
from .windows import WindowPersist, WindowSide, WindowUpdater
