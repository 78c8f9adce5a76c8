package org.edgefl.values;

import org.edgefl.json.JsonObject;

/**
 * The amount of local training.
 *
 * @param mostSteps most steps over all epochs, or null
 */
public record LocalWork(int epochs, int batchSize, Integer mostSteps) {
    static LocalWork of(JsonObject fields) {
        if (fields == null) {
            return new LocalWork(1, 32, null);
        }
        return new LocalWork(fields.has("epochs") ? fields.count("epochs", 1) : 1,
            fields.has("batch_size") ? fields.count("batch_size", 1) : 32,
            fields.has("most_steps") ? (Integer) fields.count("most_steps", 1) : null);
    }
}
