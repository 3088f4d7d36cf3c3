"""Which address workers call for what lives in the driver process: the loopback, or one of Spark's network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import SparkSession

from ..config import Config
from ..errors import DefinitionError
from ..model.plan import Plan, ProcessorNode, SpoutNode
from ..model.requirements import needs_of
from ..rpc.service import HomeAddress, HomeService
from ..spouts import IPartitionedTridentSpout
from .launcher import is_one_machine, master_of

AUTHENTICATE = "spark.authenticate"
_ANY = ("", "0.0.0.0", "::", "[::]")  # noqa: S104  compared, not bound


class Homes:
    """The home services of one cluster object: ``local`` on the loopback, and one on Spark's address once needed."""

    def __init__(self) -> None:
        self.local = HomeService()
        self._network: HomeService | None = None

    def for_workers(self, spark: SparkSession, plan: Plan, conf: Mapping[str, Any]) -> HomeAddress:
        """Return the address for the workers of a topology. Called on the driver, before the start.

        Raises DefinitionError if executors are on other machines, the topology has something that lives in the driver,
        and the user has not allowed the network.
        """
        users = [] if is_one_machine(master_of(spark)) else list(home_users(plan))
        if not users:
            return self.local.address
        if why := refusal(spark, plan, conf):
            raise DefinitionError(why)
        if self._network is None:
            self._network = _on_network(spark, int(conf.get(Config.TOPOLOGY_HOME_PORT) or 0))
        return self._network.address

    def close(self) -> None:
        for service in (self.local, self._network):
            if service is not None:
                service.close()


def home_users(plan: Plan) -> Iterator[str]:
    """Return what workers call in the driver process, in words."""
    states = {node.state.id: node.state for node in plan.nodes if isinstance(node, ProcessorNode) and node.state}
    for state in states.values():
        if needs_of(state.factory).home:
            yield f"state {state.name!r} lives in the driver process"
    for node in plan.nodes:
        if isinstance(node, SpoutNode) and isinstance(node.spout, IPartitionedTridentSpout):
            yield (
                f"spout {node.spout_id!r} is an IPartitionedTridentSpout: the driver stores the metadata of a batch "
                "before the batch commits"
            )


def is_allowed(spark: SparkSession, conf: Mapping[str, Any]) -> bool:
    """Return whether workers may call the driver over the network. ``topology.home.network`` decides, else Spark's
    setting."""
    setting = conf.get(Config.TOPOLOGY_HOME_NETWORK)
    if setting is not None:
        return bool(setting)
    return str(spark.sparkContext.getConf().get(AUTHENTICATE, "false")).lower() == "true"


def refusal(spark: SparkSession, plan: Plan, conf: Mapping[str, Any]) -> str:
    """Return why the topology may not run on this cluster; "" if it may."""
    users = [] if is_one_machine(master_of(spark)) or is_allowed(spark, conf) else list(home_users(plan))
    return "" if not users else (
        f"{'; '.join(users)}. The executors of {spark.sparkContext.master} are on other machines, so their tasks would "
        "call the driver over the network, authenticated but not encrypted. Use a state on a server and a spout that "
        "reports its metadata (IOpaquePartitionedTridentSpout, KafkaSpout, FileSpout); or allow it: "
        f"{AUTHENTICATE}=true in Spark's settings, or {Config.TOPOLOGY_HOME_NETWORK}=true in the topology's"
    )


def _on_network(spark: SparkSession, port: int) -> HomeService:
    """Return a service on the address that Spark's driver has. Never on every interface."""
    settings = spark.sparkContext.getConf()
    host = str(settings.get("spark.driver.host", ""))
    bind = str(settings.get("spark.driver.bindAddress", host))
    bind = host if bind in _ANY else bind
    try:
        return HomeService(bind, port, host)
    except OSError as error:
        raise DefinitionError(
            f"cannot listen on {bind}, port {port or 'any'}, for the tasks that call the driver: {error}. The address "
            "is that of spark.driver.bindAddress or spark.driver.host, which must be one of this machine; the port is "
            f"{Config.TOPOLOGY_HOME_PORT}"
        ) from error
