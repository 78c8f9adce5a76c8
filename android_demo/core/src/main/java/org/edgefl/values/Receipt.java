package org.edgefl.values;

import java.util.Set;
import org.edgefl.json.InvalidJson;
import org.edgefl.json.JsonObject;

/**
 * The coordinator's acknowledgement of a result or a refusal.
 *
 * @param outcome {@code accepted}, {@code already have it} or {@code late}
 * @param retrySeconds when to poll again; 0 means at once
 */
public record Receipt(String outcome, double retrySeconds) {
    private static final Set<String> OUTCOMES = Set.of("accepted", "already have it", "late");

    /** Read a receipt. */
    public static Receipt of(JsonObject fields) {
        String outcome = fields.text("outcome");
        if (!OUTCOMES.contains(outcome)) {
            throw new InvalidJson("the outcome '" + outcome + "' is not known");
        }
        return new Receipt(outcome, fields.number("retry_seconds", 0));
    }
}
