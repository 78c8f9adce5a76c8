package org.edgefl.agent;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.edgefl.json.JsonObject;
import org.edgefl.values.Assignment;
import org.edgefl.values.ClientPlan;

/**
 * The task that a device has, kept on its disk.
 *
 * @param codings how the result may be compressed, or null
 * @param receivedMillis wall-clock time of its arrival: all that is left after a reboot
 * @param boot the start of the system in which it arrived, or an empty text
 * @param receivedSeconds the device's clock at its arrival
 */
record PendingTask(ClientPlan plan, JsonObject document, String codings, long receivedMillis, String boot,
        double receivedSeconds) {
    /** A task that arrives now. */
    static PendingTask arrived(Assignment answer, DeviceClock clock) {
        return new PendingTask(ClientPlan.of(answer.plan()), answer.plan(), answer.acceptedCodings(),
            System.currentTimeMillis(), clock.boot(), clock.seconds());
    }

    static PendingTask load(AgentHome home) {
        JsonObject fields = home.document("task/plan.json");
        if (fields == null || !fields.has("plan")) {
            return null;
        }
        JsonObject document = fields.object("plan");
        return new PendingTask(ClientPlan.of(document), document, fields.textOrNull("codings"),
            fields.whole("received_millis"), fields.has("boot") ? fields.text("boot") : "",
            fields.number("received_seconds", 0));
    }

    void save(AgentHome home) throws IOException {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("plan", document.toJson());
        fields.put("codings", codings);
        fields.put("received_millis", receivedMillis);
        fields.put("boot", boot);
        fields.put("received_seconds", receivedSeconds);
        home.put("task/plan.json", fields);
    }

    /**
     * Seconds since its arrival. After a reboot only the wall clock is left; if it was set back, it says nothing, and
     * the coordinator decides what is late.
     */
    double age(DeviceClock clock) {
        boolean same = !boot.isEmpty() && boot.equals(clock.boot());
        double age = same ? clock.seconds() - receivedSeconds : (System.currentTimeMillis() - receivedMillis) / 1000.0;
        return Math.max(0, age);
    }
}
