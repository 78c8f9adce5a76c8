package org.edgefl.values;

import org.edgefl.json.JsonObject;

/**
 * The coordinator's acknowledgement of a result or a refusal.
 *
 * @param outcome {@code accepted}, {@code already have it} or {@code late}
 * @param retrySeconds when to poll again; 0 means at once
 */
public record Receipt(String outcome, double retrySeconds) {
    /** Read a receipt. */
    public static Receipt of(JsonObject fields) {
        return new Receipt(fields.text("outcome"), fields.number("retry_seconds", 0));
    }
}
