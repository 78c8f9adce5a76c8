package org.edgefl.agent;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.edgefl.json.JsonObject;
import org.edgefl.values.ClientPlan;

/**
 * The task that a device has, kept on its disk.
 *
 * @param codings how the result may be compressed, or null
 * @param receivedMillis wall-clock time of its arrival: all that is left after a reboot
 */
record PendingTask(ClientPlan plan, JsonObject document, String codings, long receivedMillis) {
    static PendingTask load(AgentHome home) {
        JsonObject fields = home.document("task/plan.json");
        if (fields == null || !fields.has("plan")) {
            return null;
        }
        JsonObject document = fields.object("plan");
        return new PendingTask(
            ClientPlan.of(document), document, fields.textOrNull("codings"), fields.whole("received_millis"));
    }

    void save(AgentHome home) throws IOException {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("plan", document.toJson());
        fields.put("codings", codings);
        fields.put("received_millis", receivedMillis);
        home.put("task/plan.json", fields);
    }

    /** Seconds since its arrival; 0 if the clock went backwards. */
    double age() {
        return Math.max(0, (System.currentTimeMillis() - receivedMillis) / 1000.0);
    }
}
