package org.edgefl.agent;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.golden.GoldenTasks;
import org.edgefl.http.Answer;
import org.edgefl.http.Content;
import org.edgefl.http.Meter;
import org.edgefl.http.Request;
import org.edgefl.http.Transport;
import org.edgefl.http.Unreachable;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;
import org.edgefl.wire.Body;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.Packing;

/** A coordinator in memory that hands out the plans of tasks.json. It remembers what it was asked. */
final class FakeCoordinator implements Transport {
    /** Requests in their order, such as "POST /v1/devices". */
    final List<String> requests = new ArrayList<>();
    /** Enrolments that it received. */
    final List<JsonObject> enrolments = new ArrayList<>();
    /** Updates that it received. */
    final List<Body> results = new ArrayList<>();
    /** Refusals that it received. */
    final List<JsonObject> refusals = new ArrayList<>();
    /** Numbers of samples that it was told after the enrolment. */
    final List<Integer> samples = new ArrayList<>();
    /** Whether it is from before numbers of samples. */
    boolean older;
    /** Plans that it will hand out. */
    final Deque<Map<String, Object>> plans = new ArrayDeque<>();
    /** Whether nobody can reach it. */
    boolean unreachable;
    /** The status of its response to a result. */
    int resultStatus = 200;
    /** What it says if that status is not 200. */
    String resultProblem = "this update is not wanted";
    /** The outcome in that response. */
    String outcome = "accepted";
    /** The pin that it shows. */
    String pin;
    /** What it says a sample is. */
    Map<String, Object> sample = GoldenTasks.sample();
    /** What happens when it is asked for a task, and when it is told a refusal. */
    Runnable whenPolled = () -> { };
    Runnable whenRefused = () -> { };
    private Meter meter = Meter.NONE;

    Agent.Connector connector() {
        return (url, pins, counts) -> {
            meter = counts;
            return this;
        };
    }

    long count(String request) {
        return requests.stream().filter(request::equals).count();
    }

    @Override
    public Answer send(Request request) {
        if (unreachable) {
            throw new Unreachable("nobody is there", 0, null);
        }
        String path = request.path().replaceAll("\\?.*", "");
        requests.add(request.method() + " " + path.replaceAll("sha256:.*", ""));
        if (path.startsWith("/v1/artifacts/")) {
            return new Reply(200, GoldenTasks.artifact(path.substring("/v1/artifacts/".length())));
        }
        if (path.endsWith("/result")) {
            return receiveResult(request);
        }
        if (path.endsWith("/refusal")) {
            whenRefused.run();
            refusals.add(JsonReader.object(content(request)));
            return receipt("accepted");
        }
        return switch (path) {
            case "/v1/sample" -> json(200, sample);
            case "/v1/devices" -> enrol(request);
            case "/v1/tasks/next" -> next();
            case "/v1/devices/me/samples" -> older ? problem(404, "there is no " + path) : countSamples(request);
            case "/v1/devices/me/capabilities" -> json(200, Map.of());
            default -> problem(404, "there is no " + path);
        };
    }

    private Answer enrol(Request request) {
        JsonObject asked = JsonReader.object(content(request));
        if (older && asked.has("samples")) {
            return problem(422, "field 'samples' is not a known field");
        }
        enrolments.add(asked);
        Map<String, Object> fields = document("enrolled");
        fields.put("device_id", "phone-7");
        fields.put("token", "edgefl-token-" + enrolments.size());
        return json(201, fields);
    }

    private Answer countSamples(Request request) {
        samples.add((int) JsonReader.object(content(request)).whole("samples"));
        return json(200, Map.of());
    }

    private Answer next() {
        whenPolled.run();
        Map<String, Object> fields = document("assignment");
        fields.put("plan", plans.peek());
        fields.put("retry_seconds", 0);
        return json(200, fields);
    }

    private Answer receiveResult(Request request) {
        byte[] body = content(request);
        if (resultStatus != 200) {
            plans.poll();
            return problem(resultStatus, resultProblem);
        }
        results.add(BodyReader.read(ByteBuffer.wrap(body)));
        return receipt(outcome);
    }

    private Answer receipt(String said) {
        plans.poll();
        Map<String, Object> fields = document("receipt");
        fields.put("task_id", "task-7");
        fields.put("outcome", said);
        return json(200, fields);
    }

    private byte[] content(Request request) {
        Content content = request.content();
        try {
            byte[] sent = content.bytes() == null ? Files.readAllBytes(content.file()) : content.bytes();
            meter.sent(sent.length);
            return content.coding() == null ? sent : Packing.unpack(sent, content.coding());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Map<String, Object> document(String schema) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("schema", "edgefl." + schema + "/1");
        return fields;
    }

    private Answer problem(int status, String problem) {
        return json(status, Map.of("error", Map.of("problem", problem, "fix", "Do something else.")));
    }

    private Answer json(int status, Map<String, Object> document) {
        return new Reply(status, JsonText.write(document).getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void abort() {
        // Every answer is there at once.
    }

    /** An answer whose body is in memory. */
    private final class Reply implements Answer {
        private final int status;
        private final byte[] body;

        Reply(int status, byte[] body) {
            this.status = status;
            this.body = body;
        }

        @Override
        public int status() {
            return status;
        }

        @Override
        public String header(String name) {
            return null;
        }

        @Override
        public InputStream body() {
            return new ByteArrayInputStream(body) {
                @Override
                public synchronized int read(byte[] to, int from, int most) {
                    int found = super.read(to, from, Math.min(most, 256));
                    meter.received(Math.max(found, 0));
                    return found;
                }
            };
        }

        @Override
        public String pin() {
            return pin;
        }

        @Override
        public void close() {}
    }
}
