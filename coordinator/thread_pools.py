"""Thread pools for blocking calls beside the event loop: the database, the blob store, exports.

Short calls have their own threads, so that one operator's export never delays a thousand polls. So do live updates,
whose watchers take silence for a coordinator that is down, and JSON, which its sender may have made hard to parse. A
read from an SQLite file takes a tenth of a millisecond, less than passing it to a thread and back, and waits for no
writer: such reads run on the event loop itself.
"""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["ThreadPools"]

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPools:
    """Bounded sets of threads."""

    def __init__(self, short: int = 6, long: int = 2, watching: int = 2, *, local: bool = False) -> None:
        self._local = local
        """Whether the database is a local file."""
        self._short = ThreadPoolExecutor(short, thread_name_prefix="short")
        self._long = ThreadPoolExecutor(long, thread_name_prefix="long")
        self._watching = ThreadPoolExecutor(watching, thread_name_prefix="watch")
        self._parsing = ThreadPoolExecutor(1, thread_name_prefix="parse")

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that takes milliseconds: a query, a piece of a file."""
        return await self._on(self._short, call, *args, **kwargs)

    async def read(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that reads a few rows of the database and does nothing else."""
        return call(*args, **kwargs) if self._local else await self.run(call, *args, **kwargs)

    async def run_long(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that may take seconds: an export, a table of everything."""
        return await self._on(self._long, call, *args, **kwargs)

    async def watch(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that reads a federation for live updates."""
        return await self._on(self._watching, call, *args, **kwargs)

    async def parse(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that parses what a stranger sent; one at a time."""
        return await self._on(self._parsing, call, *args, **kwargs)

    def stop(self) -> None:
        """Wait for running calls, and accept no more."""
        for pool in (self._short, self._long, self._watching, self._parsing):
            pool.shutdown(cancel_futures=True)

    @staticmethod
    async def _on(pool: ThreadPoolExecutor, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        # In the context of the request, so that its log lines have the request id.
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(pool, lambda: context.run(call, *args, **kwargs))
