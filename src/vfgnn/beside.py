"""A thread beside a party's own, for work that runs ahead: what is dealt, before the steps that use it.

Whatever fails in one of the two ends both, and is raised in the party's own. Nothing leaves but over the channel that
the work has for itself (`Channel.beside`).
"""

from collections.abc import Callable
from threading import Thread

import torch

from vfgnn.channel import Channel


class BesideThread:
    """Runs `work` over `channel`; `fail` tells whoever waits for what the work makes that no more will come."""

    def __init__(self, work: Callable[[], None], channel: Channel, fail: Callable[[BaseException], None]) -> None:
        self._work, self._channel, self._fail = work, channel, fail
        self._failure: BaseException | None = None
        self._cores = torch.get_num_threads()  # of the party's thread; a new one would take all
        self._thread = Thread(target=self._run, name=f"{channel.party}, ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        torch.set_num_threads(self._cores)
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 (it is raised again in the party's thread)
            self._failure = error
            self._fail(error)
            self._channel.interrupt(error)

    def join(self) -> None:
        """Wait until all is done."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        self._channel.rejoin()

    def abandon(self, error: BaseException) -> None:
        """The party's thread has failed: end this one, so that nothing is sent or noted from now on."""
        self._channel.stop(error)
        self._fail(error)
        self._channel.interrupt(error)
        self._thread.join()
