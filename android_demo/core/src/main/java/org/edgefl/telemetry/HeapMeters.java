package org.edgefl.telemetry;

import java.util.LinkedHashMap;
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
        return section(baseline, Math.max(baseline, used()), "Java heap at the end", "heap", "estimated");
    }

    /** Return a section of memory. */
    public static Map<String, Object> section(
            long baseline, long peak, String source, String scope, String provenance) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("baseline_bytes", baseline);
        fields.put("peak_bytes", Math.max(baseline, peak));
        fields.put("source", source);
        fields.put("scope", scope);
        fields.put("provenance", provenance);
        return fields;
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
