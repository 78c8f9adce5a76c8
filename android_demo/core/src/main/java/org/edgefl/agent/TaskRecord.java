package org.edgefl.agent;

import org.edgefl.json.JsonObject;

/**
 * How one task ended, for the device's owner.
 *
 * @param round the round, from 1
 * @param personal whether it was fine-tuning after the last round, which stays on the device
 * @param outcome {@code accepted}, {@code already have it}, {@code late}, {@code refused} or {@code rejected}
 * @param message the reason of a refusal or rejection; empty otherwise
 * @param steps 0 if it was refused before it trained, as are samples
 * @param loss NaN if it did not train
 * @param accuracy on the device's validation samples, or null
 * @param telemetry what it cost (docs/telemetry.md), or null if it did not train
 */
public record TaskRecord(
        String taskId, int round, boolean personal, String rule, String outcome, String message, long endedMillis,
        int samples, int steps, double loss, Double accuracy, JsonObject telemetry) {}
