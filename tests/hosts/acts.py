"""What each kind of fault does to the hosts."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from testbed.hosts import Host

from .hook import Caller
from .kinds import Planned
from .lab import DRIVERS, Lab
from .processes import EXECUTOR, MASTER, WORKER, real_pid, running


class Acts:
    """Does what was planned, in the thread of the process that stands at the place: it goes on when the act returns.
    ``story`` is asked where the driver is and which batches are over."""

    def __init__(self, lab: Lab, story: Any) -> None:
        self.lab, self.story, self.network = lab, story, lab.network
        self.pending: list[threading.Thread] = []

    def __call__(self, planned: Planned, caller: Caller | None) -> None:
        ACTS[planned.kind.rpartition(": ")[2]](self, planned, caller)

    def finish(self) -> None:
        """Everything that was hurt is whole again, or coming back."""
        for thread in list(self.pending):
            thread.join(90)
        with self.lab.lock:
            for host in self.network.hosts.values():
                with contextlib.suppress(FileNotFoundError):
                    if host.alive:
                        host.resume()
            self.network.heal()

    # -- kills

    def python_worker(self, planned: Planned, caller: Caller | None) -> None:
        assert caller is not None
        self._kill(real_pid(self.network.hosts[caller.host], caller.pid))

    def executor(self, planned: Planned, caller: Caller | None) -> None:
        for pid in running(self._worker(planned, caller), EXECUTOR):
            self._kill(pid)

    def worker_host(self, planned: Planned, caller: Caller | None) -> None:
        host = self._worker(planned, caller)
        self._lose(host.name)
        self._later(planned.lasts, lambda: self._worker_back(host.name))

    def master(self, planned: Planned, caller: Caller | None) -> None:
        """Every second time an executor dies while there is no master."""
        for pid in running(self.network.hosts["master"], MASTER):
            self._kill(pid)
        if planned.pick % 2:
            self.executor(planned, caller if caller and caller.host not in DRIVERS else None)
        self._later(planned.lasts, self.lab.hosts.start_master)

    def driver(self, planned: Planned, caller: Caller | None) -> None:
        """Java or Python, or both."""
        host = self.network.hosts[self.story.driver.host]
        python, java = real_pid(host, self.story.driver.pid), running(host, b"SparkSubmit")
        for pid in {0: [*java, python], 1: java, 2: [python]}[planned.pick % 3]:
            self._kill(pid)

    def driver_host(self, planned: Planned, caller: Caller | None) -> None:
        name = self.story.driver.host
        self._lose(name)
        self._later(planned.lasts, lambda: self._again(lambda: self.network.boot(name)))

    # -- cuts

    def driver_cut_from_worker(self, planned: Planned, caller: Caller | None) -> None:
        """The one who is held commits after Spark has given up its executor. Every second time the worker cannot hear
        the master either, which would end the executor."""
        assert caller is not None
        driver, worker = self.story.driver.host, caller.host
        with self.lab.lock:
            self.network.cut(driver, worker)
            if planned.pick % 2:
                self.network.cut("master", worker)
        self._later(planned.lasts + 2, lambda: self._again(self.network.heal))
        if planned.step == "begin":  # it holds no lock yet: let another one commit the batch first
            self.story.wait_for(planned.txid + planned.pick // 2 % 2, planned.lasts)
        else:
            self.story.over.wait(planned.lasts)

    def driver_cut_from_checkpoint(self, planned: Planned, caller: Caller | None) -> None:
        with self.lab.lock:
            self.network.cut(self.story.driver.host, "storage")
        self._later(planned.lasts, lambda: self._again(self.network.heal))

    def driver_cut_from_store(self, planned: Planned, caller: Caller | None) -> None:
        self._cut_from_store(self.network.hosts[self.story.driver.host], planned)

    def worker_cut_from_store(self, planned: Planned, caller: Caller | None) -> None:
        self._cut_from_store(self._worker(planned, caller), planned)

    def _cut_from_store(self, host: Host, planned: Planned) -> None:
        with self.lab.lock:
            gates = [self.network.gate(host.name, server.port) for server in self.lab.servers.values()]
        for gate in gates:
            gate.refuse = True
            gate.cut()

        def heal() -> None:
            for gate in gates:
                gate.refuse = False

        self._later(planned.lasts, heal)

    # -- slow and stopped

    def slow(self, planned: Planned, caller: Caller | None) -> None:
        names = [*(host.name for host in self._alive()), self.story.driver.host]
        name = names[planned.pick % len(names)]
        with self.lab.lock:
            self.network.slow(name, 200)
        self._later(planned.lasts, lambda: self._again(lambda: self.network.fast(name)))

    def worker_paused(self, planned: Planned, caller: Caller | None) -> None:
        self._pause(self._worker(planned, caller), planned)

    def driver_paused(self, planned: Planned, caller: Caller | None) -> None:
        self._pause(self.network.hosts[self.story.driver.host], planned)

    def _pause(self, host: Host, planned: Planned) -> None:
        host.pause()

        def resume() -> None:
            if host.alive:
                host.resume()

        self._later(planned.lasts, resume)

    # -- what Spark itself does

    def shuffle_files(self, planned: Planned, caller: Caller | None) -> None:
        for host in self._alive() if planned.pick % 2 else [self._worker(planned, caller)]:
            for file in host.path("/tmp").glob("spark-*/executor-*/blockmgr-*/*/shuffle_*"):
                file.unlink(missing_ok=True)

    def straggler(self, planned: Planned, caller: Caller | None) -> None:
        """Before its transaction it waits for its copy; in it, it holds locks that the copy waits for."""
        if planned.step == "begin":
            self.story.wait_for(planned.txid, planned.lasts)
        else:
            self.story.over.wait(planned.lasts)

    def taken_away(self, planned: Planned, caller: Caller | None) -> None:
        """Somebody waits until Spark has taken an idle executor away."""
        before, until = self._executors(), time.monotonic() + planned.lasts
        while self._executors() >= before:
            if time.monotonic() > until or self.story.over.wait(0.2):
                self.story.spared(planned)
                return

    def decommissioned(self, planned: Planned, caller: Caller | None) -> None:
        host = self._worker(planned, caller)
        for pid in running(host, WORKER):
            os.kill(pid, signal.SIGPWR)

        def back() -> None:
            for pid in [*running(host, WORKER), *running(host, EXECUTOR)]:
                self._kill(pid)
            self.lab.hosts.start_worker(host.name)

        self._later(planned.lasts, back)

    # -- pieces

    def _worker(self, planned: Planned, caller: Caller | None) -> Host:
        """The host of the caller, if that is a worker; else one that has an executor."""
        if caller is not None and caller.host not in DRIVERS:
            return self.network.hosts[caller.host]
        hosts = self._alive()
        busy = [host for host in hosts if running(host, EXECUTOR)] or hosts
        return busy[planned.pick % len(busy)]

    def _alive(self) -> list[Host]:
        return [host for host in self.lab.hosts.workers if host.alive]

    def _executors(self) -> int:
        return sum(len(running(host, EXECUTOR)) for host in self._alive())

    def _lose(self, name: str) -> None:
        with self.lab.lock:
            self.network.kill(name)

    def _worker_back(self, name: str) -> None:
        with self.lab.lock:
            if not self.network.hosts[name].alive:
                self.lab.hosts.reboot(name)

    def _again(self, act: Callable[[], Any]) -> None:
        with self.lab.lock:
            act()

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _later(self, seconds: float, act: Callable[[], Any]) -> None:
        def wait() -> None:
            self.story.over.wait(seconds)
            act()

        thread = threading.Thread(target=wait, name="comes back")
        self.pending = [one for one in self.pending if one.is_alive()] + [thread]
        thread.start()


ACTS: dict[str, Callable[[Acts, Planned, Caller | None], None]] = {
    "Python worker killed": Acts.python_worker,
    "executor killed": Acts.executor,
    "worker host killed": Acts.worker_host,
    "master killed": Acts.master,
    "driver killed": Acts.driver,
    "driver host killed": Acts.driver_host,
    "driver and worker cut": Acts.driver_cut_from_worker,
    "driver and checkpoint cut": Acts.driver_cut_from_checkpoint,
    "driver and store cut": Acts.driver_cut_from_store,
    "worker and store cut": Acts.worker_cut_from_store,
    "host slow": Acts.slow,
    "worker host paused": Acts.worker_paused,
    "driver host paused": Acts.driver_paused,
    "shuffle files lost": Acts.shuffle_files,
    "straggler": Acts.straggler,
    "executors taken away": Acts.taken_away,
    "worker decommissioned": Acts.decommissioned,
}
