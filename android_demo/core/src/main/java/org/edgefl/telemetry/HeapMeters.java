package org.edgefl.telemetry;

import java.util.Map;

/** What every JVM can tell: its heap. */
public final class HeapMeters implements Meters {
    private long baseline;

    @Override
    public void begin() {
        baseline = used();
    }

    private static long used() {
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }

    @Override
    public Map<String, Object> memory() {
        return TelemetrySections.memory(baseline, used(), "Java heap at the end", "heap", TelemetrySections.ESTIMATED);
    }

    @Override
    public Map<String, Object> energy() {
        return null;
    }

    @Override
    public Map<String, Object> thermal() {
        return null;
    }
}
