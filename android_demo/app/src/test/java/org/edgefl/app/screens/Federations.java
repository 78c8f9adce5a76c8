package org.edgefl.app.screens;

import java.util.ArrayList;
import java.util.List;
import org.edgefl.agent.Invitation;
import org.edgefl.agent.JoinedFederation;
import org.edgefl.agent.TaskRecord;
import org.edgefl.data.Normalisation;
import org.edgefl.http.Pairing;
import org.edgefl.json.JsonReader;
import org.edgefl.values.SampleSpec;

/** Federations, invitations and tasks for tests. */
final class Federations {
    static final String PIN = "sha256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ";
    static final String LINK = "edgefl://join?url=https%3A%2F%2Fdigits.example.org%3A8443&key=edgefl-key-s3cret"
        + "&federation=school-digits&pin=" + PIN;
    static final String PAGE_LINK =
        "https://digits.example.org:8443/join#key=edgefl-key-s3cret&federation=school-digits";

    private Federations() {}

    /** Grey pictures of 28 x 28 in 10 classes. */
    static SampleSpec digits() {
        return new SampleSpec(new long[] {1, 28, 28}, "float32", "uint8",
            new Normalisation(new double[] {0.5}, new double[] {0.5}, 255), 10, null);
    }

    /** Rows of 4 numbers in 3 classes. */
    static SampleSpec rows() {
        return new SampleSpec(new long[] {4}, "float32", "float32", null, 3, null);
    }

    static Invitation invitation() {
        return new Invitation(Pairing.parse(LINK, false), digits(), Invitation.Trust.PINNED, PIN);
    }

    static JoinedFederation joined(SampleSpec spec) {
        return new JoinedFederation("https://digits.example.org:8443", "school-digits", "device-76d8abca", spec,
            List.of(PIN));
    }

    /** Tasks of every outcome and source of energy, the newest first. */
    static List<TaskRecord> history() {
        List<TaskRecord> tasks = new ArrayList<>();
        for (int round = 1; round <= 9; round++) {
            double seconds = 20 + 7 * (round * 5 % 4) + round;
            tasks.add(0, task(round, "accepted", "", telemetry(seconds, energy(round, seconds))));
        }
        tasks.add(0, task(10, "late", "", telemetry(61.5, "null")));
        tasks.add(0, task(11, "refused", "the battery is at 41 °C", null));
        return tasks;
    }

    private static String energy(int round, double seconds) {
        return switch (round % 3) {
            case 0 -> "{\"joules\": " + 2.1 * seconds + ", \"source\": \"android power monitor\", \"plugged\": true}";
            case 1 -> "{\"joules\": " + 1.8 * seconds
                + ", \"source\": \"android battery counter\", \"sample_hertz\": 1.0, \"plugged\": false}";
            default -> "{\"joules\": " + 1.2 * seconds
                + ", \"source\": \"CPU seconds x 1.2 W a core\", \"plugged\": true}";
        };
    }

    static String telemetry(double seconds, String energy) {
        return "{\"latency\": {\"round_seconds\": " + seconds + "}, \"memory\": {\"peak_bytes\": 187000000, \"scope\":"
            + " \"process\"}, \"energy\": " + energy + ", \"thermal\": {\"start_status\": \"none\", \"end_status\":"
            + " \"light\"}, \"transfer\": {\"up_bytes\": 1600000, \"down_bytes\": 1750000}}";
    }

    static TaskRecord task(int round, String outcome, String message, String telemetry) {
        return new TaskRecord("task-" + round, round, false, "sgd", outcome, message,
            1_790_000_000_000L + round * 3_600_000L, telemetry == null ? 0 : 120, telemetry == null ? 0 : 34, 0.2, 0.9,
            telemetry == null ? null : JsonReader.object(telemetry));
    }
}
