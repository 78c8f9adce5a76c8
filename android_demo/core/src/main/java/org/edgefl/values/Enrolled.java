package org.edgefl.values;

import org.edgefl.json.JsonObject;

/**
 * The response to an enrolment.
 *
 * @param token the device's secret from now on
 */
public record Enrolled(String deviceId, String token) {
    /** Read the response. */
    public static Enrolled of(JsonObject fields) {
        return new Enrolled(Identifiers.name(fields.text("device_id"), "device_id"),
            Identifiers.name(fields.text("token"), "token"));
    }

    /** The device, without its secret. */
    @Override
    public String toString() {
        return deviceId;
    }
}
