package org.edgefl.values;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;
import org.edgefl.wire.Seeds;

/**
 * One device's task in one round (docs/protocol.md). Everything heavy is named by digest; null means that there is none.
 *
 * @param rule the name of the local rule
 * @param settings the rule's settings
 * @param seed the 64 bits of the seed of all randomness
 * @param predictedSeconds what the training is expected to take, or 0
 */
public record ClientPlan(
        String taskId, String deviceId, int round, int rounds, String model, String mask, String maskBody, String tensors,
        String graph, String weights, String extras, String inference, String rule, JsonObject settings, LocalWork work,
        long seed, double deadlineSeconds, Long predictedPeakBytes, double predictedSeconds) {

    /** Read a plan. */
    public static ClientPlan of(JsonObject fields) {
        JsonObject rule = fields.object("rule");
        JsonObject settings = rule.has("settings") ? rule.object("settings") : JsonReader.object("{}");
        JsonObject predicted = fields.objectOrNull("predicted");
        return new ClientPlan(Identifiers.name(fields.text("task_id"), "task_id"),
            Identifiers.name(fields.text("device_id"), "device_id"), fields.count("round", 0),
            fields.has("rounds") ? fields.count("rounds", 1) : 1, digest(fields, "model"), digest(fields, "mask"),
            digest(fields, "mask_body"), digest(fields, "tensors"), digest(fields, "graph"), digest(fields, "weights"),
            digest(fields, "extras"), digest(fields, "inference"), Identifiers.name(rule.text("name"), "rule.name"),
            settings, LocalWork.of(fields.objectOrNull("work")), Seeds.parse(fields.text("seed")),
            fields.number("deadline_seconds"),
            predicted != null && predicted.has("peak_bytes") ? (Long) predicted.whole("peak_bytes") : null,
            predicted != null && predicted.has("seconds") ? predicted.number("seconds") : 0);
    }

    private static String digest(JsonObject fields, String name) {
        return Identifiers.digest(fields.textOrNull(name), name);
    }

    /** Return a text of everything that the bits of the training follow from, the device's samples aside. */
    public String origin() {
        return String.join(" ", taskId, Integer.toString(round), Integer.toString(rounds), model, mask,
            String.valueOf(maskBody), String.valueOf(graph), String.valueOf(weights), String.valueOf(extras), rule,
            JsonText.write(settings.toJson()), work.toString(), Seeds.text(seed));
    }

    /** Whether this is fine-tuning after the last round: the model stays here. */
    public boolean isPersonal() {
        return round >= rounds;
    }

    /** The digests of everything to download, the small ones first. */
    public List<String> artifacts() {
        Set<String> found = new LinkedHashSet<>();
        for (String digest : new String[] {tensors, maskBody, graph, inference, weights, extras}) {
            if (digest != null) {
                found.add(digest);
            }
        }
        return new ArrayList<>(found);
    }
}
