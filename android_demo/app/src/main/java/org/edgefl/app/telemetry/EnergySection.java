package org.edgefl.app.telemetry;

import java.util.LinkedHashMap;
import java.util.Map;

/** The section {@code energy} of a task's telemetry, as docs/messages.md has it. */
final class EnergySection {
    private EnergySection() {}

    /**
     * Return the section. What the same source shows on an idle phone is not known: nobody measures before a task.
     *
     * @param sampleHertz samples per second, or null if the source counts joules
     * @param plugged whether on external power, or null if that is not known or changed
     */
    static Map<String, Object> of(
            double joules, String source, String scope, String provenance, Double sampleHertz, Boolean plugged) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("joules", Math.max(joules, 0));
        fields.put("source", source);
        fields.put("scope", scope);
        fields.put("provenance", provenance);
        fields.put("sample_hertz", sampleHertz);
        fields.put("idle_watts", null);
        fields.put("plugged", plugged);
        return fields;
    }
}
