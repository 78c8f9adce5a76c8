package org.edgefl.telemetry;

import java.util.LinkedHashMap;
import java.util.Map;

/** The sections of a task's telemetry that {@link Meters} fill, with the field names of docs/messages.md. */
public final class TelemetrySections {
    /** Read from an instrument or a counter of the system. */
    public static final String MEASURED = "measured";
    /** Computed from something else. */
    public static final String ESTIMATED = "estimated";

    private TelemetrySections() {}

    /**
     * Return the section {@code memory}.
     *
     * @param scope {@code process}, or {@code heap} for the Java heap alone
     */
    public static Map<String, Object> memory(
            long baseline, long peak, String source, String scope, String provenance) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("baseline_bytes", baseline);
        fields.put("peak_bytes", Math.max(baseline, peak));
        fields.put("source", source);
        fields.put("scope", scope);
        fields.put("provenance", provenance);
        return fields;
    }

    /**
     * Return the section {@code energy}.
     *
     * @param scope {@code process}, {@code package} or {@code device}
     * @param sampleHertz samples per second if joules are summed from samples of power; null if they are counted
     * @param idleWatts what the same source shows on an idle device, or null
     * @param plugged whether on external power; null if that is not known, or changed
     */
    public static Map<String, Object> energy(double joules, String source, String scope, String provenance,
            Double sampleHertz, Double idleWatts, Boolean plugged) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("joules", joules);
        fields.put("source", source);
        fields.put("scope", scope);
        fields.put("provenance", provenance);
        fields.put("sample_hertz", sampleHertz);
        fields.put("idle_watts", idleWatts);
        fields.put("plugged", plugged);
        return fields;
    }

    /**
     * Return the section {@code thermal}, or null if the system shows none of it.
     *
     * @param startCelsius of the processor, never of the battery
     * @param startStatus the system's thermal status: {@code none}, {@code light}, ... {@code shutdown}
     */
    public static Map<String, Object> thermal(
            Double startCelsius, Double endCelsius, Boolean throttled, String startStatus, String endStatus) {
        boolean known = startCelsius != null || endCelsius != null || throttled != null || startStatus != null
            || endStatus != null;
        if (!known) {
            return null;
        }
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("start_celsius", startCelsius);
        fields.put("end_celsius", endCelsius);
        fields.put("throttled", throttled);
        fields.put("start_status", startStatus);
        fields.put("end_status", endStatus);
        return fields;
    }
}
