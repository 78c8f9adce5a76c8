"""Rate limits and budgets of bytes."""

import asyncio
import contextlib
import gzip
from pathlib import Path

import pytest

from coordinator.http.error_handlers import HttpError
from coordinator.http.rate_limits import ByteBudget, TokenBuckets
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


def test_a_packed_upload_takes_about_as_much_room_as_it_needs(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        site.federation("packed")
        client = site.client(site.device("packer", "packed"), **{"Content-Encoding": "gzip"})
        (task_id,) = site.open_round("packer", federation="packed")
        body, kept = gzip.compress(site.update(task_id)), site.services.limits.kept_bytes
        assert 4 * len(body) < kept
        most: list[int] = []
        memory = site.services.memory

        class Noting(ByteBudget):
            def reserved(self, size: int) -> contextlib._AsyncGeneratorContextManager[None, None]:
                most.append(size)
                return memory.reserved(size)

        site.services.memory = Noting(0, patience=0)
        assert client.put(f"/v1/tasks/{task_id}/result", content=body).status_code == 200
        assert most == [4 * len(body)]
        zeros = gzip.compress(bytes(kept // 2))  # far more than four times what comes
        assert client.put(f"/v1/tasks/{task_id}/result", content=zeros).status_code == 409
        assert sum(most[1:]) == kept
        assert memory.used == 0


def test_a_bucket_gives_a_burst_and_then_its_rate() -> None:
    now = 0.0
    buckets = TokenBuckets(rate=2.0, burst=3, most=10, clock=lambda: now)
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.empty("a")
    assert not buckets.empty("b")
    now = 0.5
    assert buckets.take("a") == 0
    assert buckets.take("a") > 0
    for number in range(100):
        buckets.take(str(number))
    assert len(buckets._levels) == 10
