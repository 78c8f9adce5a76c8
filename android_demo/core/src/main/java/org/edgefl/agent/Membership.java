package org.edgefl.agent;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.edgefl.http.Pairing;
import org.edgefl.json.JsonObject;
import org.edgefl.wire.Digests;

/**
 * Where a device has joined, or is about to: {@code device.json} of its home. The join key is never stored.
 *
 * @param enrolmentId chosen once at random, so that an enrolment can be repeated
 * @param token the device's secret as the home's vault sealed it, or null before it has enrolled
 * @param sample what the coordinator said a sample is, or null
 * @param capabilities what the coordinator knows of this software, as text, or null
 * @param code the digest of the pairing URI that the pins began with, or null
 */
record Membership(String url, List<String> pins, String federation, String enrolmentId, String deviceId, String token,
        JsonObject sample, String capabilities, String code) {

    static Membership begin(Pairing pairing) {
        return begin(pairing, UUID.randomUUID().toString());
    }

    static Membership begin(Pairing pairing, String enrolmentId) {
        return new Membership(pairing.url(), pairing.pins(), pairing.federation(), enrolmentId, null, null, null, null,
            codeOf(pairing));
    }

    static Membership load(AgentHome home) {
        return load(home.folder());
    }

    static Membership load(Path home) {
        JsonObject fields = AgentHome.document(home, "device.json");
        if (fields == null || !fields.has("url") || !fields.has("enrolment_id")) {
            return null;
        }
        return new Membership(fields.text("url"), fields.texts("pins"), fields.textOrNull("federation"),
            fields.text("enrolment_id"), fields.textOrNull("device_id"), fields.textOrNull("token"),
            fields.objectOrNull("sample"), fields.textOrNull("capabilities"),
            fields.has("code") ? fields.textOrNull("code") : null);
    }

    void save(AgentHome home) throws IOException {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("url", url);
        fields.put("pins", pins);
        fields.put("federation", federation);
        fields.put("enrolment_id", enrolmentId);
        fields.put("device_id", deviceId);
        fields.put("token", token);
        fields.put("sample", sample == null ? null : sample.toJson());
        fields.put("capabilities", capabilities);
        fields.put("code", code);
        home.put("device.json", fields);
    }

    boolean isEnrolled() {
        return token != null;
    }

    Membership enrolled(String newDeviceId, String sealedToken, String newCapabilities) {
        return new Membership(
            url, pins, federation, enrolmentId, newDeviceId, sealedToken, sample, newCapabilities, code);
    }

    Membership withPins(List<String> newPins) {
        return new Membership(url, newPins, federation, enrolmentId, deviceId, token, sample, capabilities, code);
    }

    /** Return this with the pins of a pairing URI, unless it is the one they began with: told pins are newer then. */
    Membership withPairing(Pairing pairing) {
        String newCode = codeOf(pairing);
        if (pairing.pins().isEmpty() || newCode.equals(code)) {
            return this;
        }
        return new Membership(url, pairing.pins(), federation, enrolmentId, deviceId, token, sample, capabilities,
            newCode);
    }

    Membership withSample(JsonObject newSample) {
        return new Membership(url, pins, federation, enrolmentId, deviceId, token, newSample, capabilities, code);
    }

    Membership withCapabilities(String newCapabilities) {
        return new Membership(url, pins, federation, enrolmentId, deviceId, token, sample, newCapabilities, code);
    }

    private static String codeOf(Pairing pairing) {
        return Digests.of(pairing.toPageUri().getBytes(StandardCharsets.UTF_8));
    }

    /** Where, without the secret. */
    @Override
    public String toString() {
        return deviceId + " at " + url;
    }
}
