"""A fictional device that can train any submodel, for benchmarks of the wire and the coordinator."""

from edgefl.values import CostFit, DeviceProfile, Machine

__all__ = ["unlimited_device"]


def unlimited_device() -> DeviceProfile:
    """Return the made-up profile of a device that can train any submodel."""
    cost = CostFit(
        overhead_seconds=1e-4,
        forward_seconds_per_multiply_add=1e-12,
        backward_seconds_per_multiply_add=1e-12,
        seconds_per_activation_byte=0.0,
        seconds_per_trained_parameter=0.0,
        memory_base_bytes=2**20,
        memory_bytes_per_activation_byte=1.0,
        memory_bytes_per_parameter_byte=1.0,
        memory_bytes_per_trained_parameter=4.0,
        relative_error=0.1,
        memory_relative_error=0.1,
        measurements=3,
        measured_on="nothing",
    )
    return DeviceProfile(
        device_name="made up",
        machine=Machine(architecture="none", system="none", cores=1),
        engine="none",
        threads=1,
        cost=cost,
        memory_total_bytes=2**40,
        memory_free_bytes=2**40,
        storage_free_bytes=2**40,
        measured_at="2026-01-01T00:00:00Z",
    )
