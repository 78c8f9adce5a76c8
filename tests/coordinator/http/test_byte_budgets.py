"""Budgets of bytes: reserved as bytes arrive, shared by caller, and not held by those who do not send."""

import asyncio
import contextlib
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coordinator.http import byte_budgets
from coordinator.http.byte_budgets import ByteBudget, Reservation
from coordinator.http.error_handlers import HttpError
from tests.coordinator.http.site import serving


def test_uploads_wait_for_room_in_the_memory_and_then_are_told_to_come_again() -> None:
    async def run() -> list[str]:
        budget, said = ByteBudget(100, patience=0.2), []

        async def hold(size: int, done: asyncio.Event) -> None:
            async with budget.reserved(size):
                said.append(f"has {size}")
                await done.wait()

        first, rest = asyncio.Event(), asyncio.Event()
        rest.set()
        large = asyncio.create_task(hold(80, first))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(hold(size, rest)) for size in (60, 10, 1000)]
        await asyncio.sleep(0)
        assert said == ["has 80"]  # who asks first gets first, also where a later one would fit
        first.set()
        await asyncio.gather(large, *waiting)
        assert budget.used == 0
        with pytest.raises(HttpError) as caught:
            async with budget.reserved(100), budget.reserved(1):
                pass
        assert caught.value.status == 503
        assert caught.value.headers["Retry-After"]
        assert budget.used == 0
        return said

    assert asyncio.run(run()) == ["has 80", "has 60", "has 10", "has 1000"]


def test_who_holds_something_waits_behind_those_who_hold_nothing() -> None:
    async def run() -> list[str]:
        budget, said = ByteBudget(100, patience=5), []

        async def hold(holder: str, size: int, done: asyncio.Event) -> None:
            async with budget.reserved(size, holder):
                said.append(holder)
                await done.wait()

        first, rest = asyncio.Event(), asyncio.Event()
        rest.set()
        holding = [asyncio.create_task(hold("greedy", 50, first)) for _ in range(2)]
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(hold(name, 60, rest)) for name in ("greedy", "modest", "frugal")]
        await asyncio.sleep(0)
        first.set()
        await asyncio.gather(*holding, *waiting)
        assert budget.used == 0
        return said

    assert asyncio.run(run()) == ["greedy", "greedy", "modest", "frugal", "greedy"]


def test_an_upload_that_sends_too_little_while_others_wait_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_budgets, "_WINDOW_SECONDS", 0.05)

    async def run() -> dict[str, str]:
        budget, said = ByteBudget(100, patience=5, least_rate=1000), {}

        async def send(name: str, size: int, rate: float, begun: asyncio.Event) -> None:
            try:
                async with budget.reserved(size, name) as held, held.receiving():
                    begun.set()
                    for _ in range(20):
                        await asyncio.sleep(0.02)
                        held.arrived += round(0.02 * rate)
                said[name] = "sent"
            except HttpError as error:
                said[name] = f"{error.status}, again after {error.headers['Retry-After']}"

        begun = [asyncio.Event() for _ in range(3)]
        slow = asyncio.create_task(send("slow", 50, 100, begun[0]))
        fast = asyncio.create_task(send("fast", 50, 100_000, begun[1]))
        await asyncio.gather(begun[0].wait(), begun[1].wait())
        await asyncio.gather(slow, fast, send("waiting", 50, 100_000, begun[2]))
        assert budget.used == 0
        return said

    assert asyncio.run(run()) == {"slow": "408, again after 10", "fast": "sent", "waiting": "sent"}


def test_a_slow_upload_that_is_in_nobodys_way_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_budgets, "_WINDOW_SECONDS", 0.01)

    async def run() -> None:
        budget = ByteBudget(100, patience=5, least_rate=1e9)
        async with budget.reserved(50, "slow") as held, held.receiving(), budget.reserved(50, "other"):
            await asyncio.sleep(0.1)

    asyncio.run(run())


def test_a_packed_upload_takes_memory_as_it_is_unpacked(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        site.federation("packed")
        client = site.client(site.device("packer", "packed"), **{"Content-Encoding": "gzip"})
        (task_id,) = site.open_round("packer", federation="packed")
        body = gzip.compress(site.update(task_id))
        most: list[int] = []
        memory = site.services.memory

        class Noting(ByteBudget):
            @contextlib.asynccontextmanager
            async def reserved(self, size: int, holder: str = "") -> AsyncIterator[Reservation]:
                async with memory.reserved(size, holder) as held:
                    most.append(held.size)
                    try:
                        yield held
                    finally:
                        most.append(held.size)

        site.services.memory = Noting(0, patience=0)
        assert client.put(f"/v1/tasks/{task_id}/result", content=body).status_code == 200
        assert most == [min(4 * len(body), 64 * 1024)] * 2
        zeros = gzip.compress(bytes(80_000))  # far more than four times what comes
        assert client.put(f"/v1/tasks/{task_id}/result", content=zeros).status_code == 409
        assert most[2] == 4 * len(zeros)
        assert 80_000 <= most[3] <= 80_000 + 64 * 1024
        assert memory.used == 0
