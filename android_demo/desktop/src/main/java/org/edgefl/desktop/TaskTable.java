package org.edgefl.desktop;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Locale;
import org.edgefl.agent.TaskRecord;
import org.edgefl.json.JsonObject;

/** How the device's tasks ended and what they cost, as lines of columns that are separated by tabs. */
final class TaskTable {
    private static final String HEAD = String.join("\t", "ended", "round", "rule", "outcome", "samples", "steps",
        "loss", "accuracy", "seconds", "peak_bytes", "joules", "energy", "down_bytes", "message");

    private TaskTable() {}

    static String of(List<TaskRecord> records) {
        StringBuilder out = new StringBuilder(HEAD).append('\n');
        for (TaskRecord record : records) {
            out.append(line(record)).append('\n');
        }
        return out.toString();
    }

    private static String line(TaskRecord record) {
        JsonObject telemetry = record.telemetry();
        JsonObject energy = telemetry == null ? null : telemetry.objectOrNull("energy");
        return String.join("\t",
            Instant.ofEpochMilli(record.endedMillis()).truncatedTo(ChronoUnit.SECONDS).toString(),
            record.personal() ? "personal" : String.valueOf(record.round()), record.rule(), record.outcome(),
            String.valueOf(record.samples()), String.valueOf(record.steps()),
            Double.isNaN(record.loss()) ? "" : number("%.4f", record.loss()),
            record.accuracy() == null ? "" : number("%.3f", record.accuracy()),
            telemetry == null ? "" : number("%.2f", telemetry.object("latency").number("round_seconds")),
            telemetry == null ? "" : String.valueOf(telemetry.object("memory").whole("peak_bytes")),
            energy == null ? "" : number("%.1f", energy.number("joules")),
            energy == null ? "" : energy.text("provenance") + " by " + energy.text("source"),
            telemetry == null ? "" : String.valueOf(telemetry.object("transfer").whole("down_bytes")),
            record.message().replaceAll("[\\t\\r\\n]", " "));
    }

    private static String number(String form, double value) {
        return String.format(Locale.ROOT, form, value);
    }
}
