package org.edgefl.values;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What this client's software can run, so that no plan asks for more.
 *
 * @param client its name
 * @param version its version
 * @param platform what it runs on
 * @param engine the engine's name and version
 */
public record Capabilities(String client, String version, String platform, String engine, String engineVersion) {
    /** The rules that this client has, and settings of them that were added to the contract. */
    public static final List<String> RULES = List.of("class_prior", "feature_sums", "fine_tune", "head_gradients",
        "masked_noise", "masked_noise.sensitivity", "sgd", "sgd.sensitivity");
    /** The codecs of updates that it writes. */
    public static final List<String> CODECS = List.of("bits", "dense", "sparse");

    /** Return the document, with its schema. */
    public Map<String, Object> toJson() {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("schema", "edgefl.capabilities/1");
        fields.put("client", Map.of("name", client, "version", version));
        fields.put("platform", platform);
        Map<String, Object> runs = new LinkedHashMap<>();
        runs.put("name", engine);
        runs.put("version", engineVersion);
        runs.put("format", "onnx");
        fields.put("engines", List.of(runs));
        fields.put("rules", RULES);
        fields.put("codecs", CODECS);
        fields.put("batch_sizes", null);
        return fields;
    }
}
