"""Rate limits per caller."""

from coordinator.http.rate_limits import TokenBuckets


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
