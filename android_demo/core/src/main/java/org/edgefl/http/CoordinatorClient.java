package org.edgefl.http;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.edgefl.json.InvalidJson;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;
import org.edgefl.values.Assignment;
import org.edgefl.values.Enrolled;
import org.edgefl.values.Receipt;
import org.edgefl.values.Refusal;
import org.edgefl.wire.OneLine;
import org.edgefl.wire.Packing;

/** The device's routes of docs/protocol.md, one method each. Every answer is bounded; nothing is tried twice here. */
public final class CoordinatorClient {
    private static final long MOST_JSON = 1 << 18;
    private static final double UPLOAD_SECONDS = 3600;
    private static final int DAY_SECONDS = 86_400;
    private static final long MOST_PROBLEM = 1 << 16;

    private final Transport transport;

    /** A client over a transport. */
    public CoordinatorClient(Transport transport) {
        this.transport = transport;
    }

    /** Enrol with the join key. */
    public Enrolled enrol(String key, Map<String, Object> enrolment) {
        return json(put("POST", "/v1/devices", key, enrolment), "enrolled", Enrolled::of);
    }

    /** Ask for a task, and wait for one up to some seconds. */
    public Assignment poll(String token, double waitSeconds) {
        String path = "/v1/tasks/next?wait=" + (waitSeconds == Math.rint(waitSeconds)
            ? String.valueOf((long) waitSeconds) : String.valueOf(waitSeconds));
        Content nothing = new Content("application/json", null, new byte[0], null);
        Request request =
            Request.of("POST", path, token, Map.of("Accept-Encoding", Packing.GZIP), nothing, waitSeconds);
        try (Answer answer = successful(request)) {
            String codings = answer.header("Accept-Encoding");
            return document(answer, "assignment", fields -> Assignment.of(fields, codings));
        }
    }

    /** Send a result. */
    public Receipt deliver(String token, String taskId, Content body) {
        Request request = new Request(
            "PUT", "/v1/tasks/" + taskId + "/result", token, Map.of(), body, 30, UPLOAD_SECONDS);
        return json(request, "receipt", Receipt::of);
    }

    /** Refuse a task. */
    public Receipt refuse(String token, String taskId, Refusal refusal) {
        return json(put("PUT", "/v1/tasks/" + taskId + "/refusal", token, refusal.toJson()), "receipt", Receipt::of);
    }

    /** Send new capabilities. */
    public void putCapabilities(String token, Map<String, Object> capabilities) {
        successful(put("PUT", "/v1/devices/me/capabilities", token, capabilities)).close();
    }

    /** Send the number of training samples. */
    public void putSamples(String token, int samples) {
        Map<String, Object> count = Map.of("schema", "edgefl.sample_count/1", "samples", samples);
        successful(put("PUT", "/v1/devices/me/samples", token, count)).close();
    }

    /** Send a new profile. */
    public void putProfile(String token, Map<String, Object> profile) {
        successful(put("PUT", "/v1/devices/me/profile", token, profile)).close();
    }

    /** Return what a sample is, or null if the coordinator is too old to say. */
    public JsonObject sample(String secret) {
        return sampleAndPin(secret).document();
    }

    /** Return what a sample is, and who said so. */
    public Told sampleAndPin(String secret) {
        return optional("/v1/sample", secret, "sample");
    }

    /** Return graphs to measure with, or null if the coordinator has none. */
    public JsonObject measurement(String secret) {
        return optional("/v1/measurement", secret, "measurement").document();
    }

    /**
     * An answer and who gave it.
     *
     * @param document null if the coordinator does not have it
     * @param pin the pin of the key that it answered with, or null without TLS
     */
    public record Told(JsonObject document, String pin) {}

    private Told optional(String path, String secret, String schema) {
        try (Answer answer = successful(Request.get(path, secret))) {
            String pin = answer.pin();
            return new Told(document(answer, schema, fields -> fields), pin);
        } catch (ProblemAnswer problem) {
            if (problem.status() == 404) {
                return new Told(null, null);
            }
            throw problem;
        }
    }

    /** Return the pins that may replace the known ones, or those; an answer must contain its own connection's pin. */
    public List<String> refreshedPins(String secret, List<String> known) {
        try (Answer answer = successful(Request.get("/v1/pins", secret))) {
            List<String> pins = document(answer, "pins", fields -> fields.texts("pins"));
            boolean valid = !pins.isEmpty() && Pin.areValid(pins) && pins.contains(answer.pin());
            return valid ? pins : known;
        } catch (Unreachable | UntrustedCertificate | ProblemAnswer older) {
            return known;
        }
    }

    /** Return the response to a download, with status 200 or 206, which must end within some seconds. */
    public Answer artifact(String secret, String path, Map<String, String> headers, double seconds) {
        return successful(new Request("GET", path, secret, headers, null, 0, seconds));
    }

    private static Request put(String method, String path, String secret, Map<String, Object> document) {
        byte[] text = JsonText.write(document).getBytes(StandardCharsets.UTF_8);
        return Request.of(method, path, secret, Map.of(), Content.json(text), 0);
    }

    private <T> T json(Request request, String schema, Function<JsonObject, T> reader) {
        try (Answer answer = successful(request)) {
            return document(answer, schema, reader);
        }
    }

    /** Read the expected document. Anything else is a proxy's page or half an answer: worth another try. */
    private static <T> T document(Answer answer, String schema, Function<JsonObject, T> reader) {
        try {
            JsonObject fields = JsonReader.object(read(answer, MOST_JSON));
            if (!("edgefl." + schema + "/1").equals(fields.get("schema"))) {
                throw new InvalidJson("it is not a document 'edgefl." + schema + "/1'");
            }
            return reader.apply(fields);
        } catch (IOException | InvalidJson error) {
            throw new Unreachable("the response is not what was asked for: " + error.getMessage(), 0, error);
        }
    }

    private static byte[] read(Answer answer, long most) throws IOException {
        InputStream body = answer.body();
        String coding = answer.header("Content-Encoding");
        if (coding == null || coding.equals("identity")) {
            return Packing.readAll(body, most);
        }
        if (!coding.equals(Packing.GZIP)) {
            throw new IOException("the coding '" + coding + "' was not asked for");
        }
        return Packing.unpack(body, coding, most);
    }

    private Answer successful(Request request) {
        Answer answer = transport.send(request);
        if (answer.status() >= 200 && answer.status() < 300) {
            return answer;
        }
        try (answer) {
            throw failure(request, answer);
        }
    }

    private static RuntimeException failure(Request request, Answer answer) {
        int status = answer.status();
        JsonObject problem = problem(answer);
        boolean passing = status == 408 || status == 425 || status == 429 || status >= 500 || status < 400;
        if (passing || problem == null) {
            String text = problem == null ? "not a response of a coordinator" : OneLine.of(problem.text("problem"));
            return new Unreachable(request + ": " + status + ", " + text, retryAfter(answer), null);
        }
        return new ProblemAnswer(status, OneLine.of(problem.text("problem")), OneLine.of(problem.text("fix")));
    }

    private static JsonObject problem(Answer answer) {
        try {
            JsonObject error = JsonReader.object(read(answer, MOST_PROBLEM)).object("error");
            error.text("problem");
            error.text("fix");
            return error;
        } catch (IOException | InvalidJson notAProblem) {
            return null;
        }
    }

    /** Whole seconds of less than a day; everything else is ignored. */
    private static double retryAfter(Answer answer) {
        String text = answer.header("Retry-After");
        boolean seconds = text != null && text.trim().matches("[0-9]{1,5}");
        int asked = seconds ? Integer.parseInt(text.trim()) : 0;
        return asked < DAY_SECONDS ? asked : 0;
    }
}
