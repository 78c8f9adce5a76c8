package org.edgefl.values;

import org.edgefl.json.JsonObject;

/**
 * The response to a poll.
 *
 * @param plan the plan as it arrived, or null if there is no task
 * @param retrySeconds when to poll again if there is no task
 * @param finished whether the federation has ended
 * @param acceptedCodings how the result may be compressed, as the response's header says, or null
 */
public record Assignment(JsonObject plan, double retrySeconds, boolean finished, String acceptedCodings) {
    /** Read an assignment. */
    public static Assignment of(JsonObject fields, String acceptedCodings) {
        return new Assignment(fields.objectOrNull("plan"), fields.number("retry_seconds"),
            fields.flag("finished", false), acceptedCodings);
    }
}
