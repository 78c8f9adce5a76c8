package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.edgefl.http.Answer;
import org.edgefl.http.Content;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.ProblemAnswer;
import org.edgefl.http.Request;
import org.edgefl.http.Transport;
import org.edgefl.http.Unreachable;
import org.edgefl.json.JsonObject;
import org.edgefl.values.Refusal;
import org.junit.jupiter.api.Test;

/** problems.json: answers of coordinators and proxies, and what to do after each. */
class ProblemsTest {
    @Test
    void everyAnswerIsTakenForWhatItIs() {
        for (JsonObject example : GoldenFiles.json("problems.json").objects("cases")) {
            CoordinatorClient client = new CoordinatorClient(new Canned(example));
            String found;
            double retryAfter = 0;
            try {
                send(client, example.text("request"));
                found = "done";
            } catch (Unreachable error) {
                found = "retry";
                retryAfter = error.retryAfterSeconds();
            } catch (ProblemAnswer problem) {
                found = problem.isDenied() ? "stop" : "drop";
            }
            assertEquals(example.text("do"), found, example.text("name"));
            assertEquals(example.number("retry_after", 0), retryAfter, example.text("name"));
        }
    }

    private static void send(CoordinatorClient client, String request) {
        switch (request) {
            case "poll" -> client.poll("token", 0);
            case "result" -> client.deliver("token", "task-7", Content.json(new byte[3]));
            case "refusal" -> client.refuse("token", "task-7", new Refusal(Refusal.Reason.DATA, "none"));
            case "download" -> client.artifact("token", "/v1/artifacts/x", Map.of(), 9).close();
            default -> throw new IllegalArgumentException(request);
        }
    }

    /** Answers every request with the same. */
    private record Canned(JsonObject example) implements Transport, Answer {
        @Override
        public Answer send(Request request) {
            return this;
        }

        @Override
        public void abort() {
            // Nothing is under way.
        }

        @Override
        public int status() {
            return example.count("status", 100);
        }

        @Override
        public String header(String name) {
            return example.object("headers").textOrNull(name);
        }

        @Override
        public InputStream body() {
            return new ByteArrayInputStream(example.text("body").getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public String pin() {
            return null;
        }

        @Override
        public void close() {
            // Nothing is open.
        }
    }
}
