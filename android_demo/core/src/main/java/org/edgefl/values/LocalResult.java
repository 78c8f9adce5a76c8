package org.edgefl.values;

import java.util.LinkedHashMap;
import java.util.Map;
import org.edgefl.json.JsonText;

/**
 * A device's report of a finished task.
 *
 * @param accuracy on its validation samples, or null
 * @param telemetry what the task cost
 */
public record LocalResult(ClientPlan plan, int samples, int steps, double loss, Double accuracy,
        Map<String, Object> telemetry, Map<String, Double> metrics) {

    /** Return the report as it goes into an update. */
    public String toJson() {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("schema", "edgefl.local_result/1");
        fields.put("task_id", plan.taskId());
        fields.put("device_id", plan.deviceId());
        fields.put("round", plan.round());
        fields.put("samples", samples);
        fields.put("steps", steps);
        fields.put("loss", loss);
        fields.put("telemetry", telemetry);
        fields.put("accuracy", accuracy);
        fields.put("metrics", metrics);
        return JsonText.write(fields);
    }
}
