package org.edgefl.app.screens;

import org.edgefl.agent.TaskRecord;
import org.edgefl.json.JsonObject;

/**
 * What a task cost, as its telemetry says (docs/telemetry.md). What the phone could not tell is NaN, -1 or null.
 *
 * @param seconds the whole task on the phone, without the network
 * @param energySource who told the joules, or null
 * @param sampleHertz samples per second of an instrument that does not count by itself
 * @param plugged whether the phone was on external power; null if that is not known
 */
record TaskCost(
        double seconds, long peakBytes, String memoryScope, double joules, String energySource,
        double sampleHertz, Boolean plugged, String startStatus, String endStatus, double startCelsius,
        double endCelsius, long upBytes, long downBytes) {

    static TaskCost of(TaskRecord task) {
        JsonObject all = task.telemetry();
        JsonObject latency = section(all, "latency");
        JsonObject memory = section(all, "memory");
        JsonObject energy = section(all, "energy");
        JsonObject thermal = section(all, "thermal");
        JsonObject transfer = section(all, "transfer");
        return new TaskCost(number(latency, "round_seconds"), whole(memory, "peak_bytes"), text(memory, "scope"),
            number(energy, "joules"), text(energy, "source"), number(energy, "sample_hertz"),
            flag(energy, "plugged"), text(thermal, "start_status"),
            text(thermal, "end_status"), number(thermal, "start_celsius"), number(thermal, "end_celsius"),
            whole(transfer, "up_bytes"), whole(transfer, "down_bytes"));
    }

    private static JsonObject section(JsonObject all, String name) {
        return all == null ? null : all.objectOrNull(name);
    }

    private static double number(JsonObject section, String name) {
        return section == null ? Double.NaN : section.number(name, Double.NaN);
    }

    private static long whole(JsonObject section, String name) {
        return section == null || !section.has(name) ? -1 : (long) section.number(name);
    }

    private static String text(JsonObject section, String name) {
        return section == null ? null : section.textOrNull(name);
    }

    private static Boolean flag(JsonObject section, String name) {
        return section == null || !section.has(name) ? null : (Boolean) section.flag(name, false);
    }

    /** Whether the joules were read from an instrument, and not computed from something else. */
    boolean isMeasured() {
        return !Double.isNaN(joules) && energySource != null && !energySource.startsWith("CPU seconds");
    }
}
