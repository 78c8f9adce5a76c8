package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.edgefl.engine.Engine;
import org.edgefl.engine.OnnxEngine;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;
import org.edgefl.rules.LocalRule;
import org.edgefl.rules.Unsupported;
import org.edgefl.training.Interrupts;
import org.edgefl.training.Trained;
import org.edgefl.training.Trainer;
import org.edgefl.values.ClientPlan;
import org.edgefl.values.LocalWork;
import org.edgefl.wire.Body;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.BodyWriter;
import org.edgefl.wire.DType;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.PackedBits;
import org.edgefl.wire.Tensor;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * tasks.json: whole tasks on a small training graph, on the real engine; forward_tasks.json: tasks that train nothing.
 *
 * <p>And the same tasks, stopped and resumed.
 */
class TasksTest {
    private final JsonObject golden = GoldenFiles.json("tasks.json");
    private final JsonObject forward = GoldenFiles.json("forward_tasks.json");
    private final Engine engine = new OnnxEngine(1);

    @TempDir
    private Path folder;

    @BeforeEach
    void writeArtifacts() throws IOException {
        for (JsonObject source : List.of(golden, forward)) {
            JsonObject artifacts = source.object("artifacts");
            for (String digest : artifacts.names()) {
                Files.write(file(digest), Base64.getDecoder().decode(artifacts.text(digest)));
            }
        }
    }

    private List<JsonObject> cases() {
        List<JsonObject> all = new ArrayList<>(golden.objects("cases"));
        all.addAll(forward.objects("cases"));
        return all;
    }

    private Path file(String digest) {
        return folder.resolve(digest.substring(7));
    }

    private Trainer trainer(String checkpoint, double seconds) {
        return new Trainer(engine, GoldenTasks.data(0), this::file, folder.resolve(checkpoint), seconds);
    }

    @Test
    void wholeTasksGiveTheSameUpdates() throws IOException {
        for (JsonObject file : List.of(golden, forward)) {
            for (JsonObject example : file.objects("cases")) {
                check(example, file.object("tolerance"));
            }
        }
    }

    private void check(JsonObject example, JsonObject tolerance) throws IOException {
        ClientPlan plan = ClientPlan.of(example.object("plan"));
        Trained trained = trainer("none", 1e9).train(plan, left -> { });
        JsonObject report = example.object("report");
        String name = example.text("name");
        assertEquals(report.count("samples", 0), trained.samples(), name);
        assertEquals(report.count("steps", 0), trained.steps(), name);
        assertEquals(report.number("loss"), trained.loss(), tolerance.number("loss"), name);
        if (report.has("accuracy")) {
            assertEquals(report.number("accuracy"), trained.accuracy(), tolerance.number("accuracy"), name);
        } else {
            assertNull(trained.accuracy(), name);
        }
        JsonObject metrics = report.object("metrics");
        assertEquals(metrics.names(), trained.metrics().keySet(), name);
        SortedMap<String, Encoded> expected =
            BodyReader.read(ByteBuffer.wrap(Base64.getDecoder().decode(example.text("body")))).tensors();
        SortedMap<String, Encoded> sent = plan.isPersonal() ? new TreeMap<>() : trained.result().sent();
        assertEquals(expected.keySet(), sent.keySet(), name);
        expected.forEach((tensor, value) -> compare(value, sent.get(tensor), tolerance, name + ", " + tensor));
    }

    private static void compare(Encoded expected, Encoded found, JsonObject tolerance, String name) {
        if (expected instanceof Encoded.Bits bits) {
            byte[] other = ((Encoded.Bits) found).packed();
            int differing = 0;
            for (int i = 0; i < 8 * other.length; i++) {
                differing += PackedBits.get(bits.packed(), i) != PackedBits.get(other, i) ? 1 : 0;
            }
            assertTrue(differing <= Math.ceil(tolerance.number("bits") * 8 * other.length), name);
            return;
        }
        Tensor wanted = ((Encoded.Dense) expected).tensor();
        Tensor got = ((Encoded.Dense) found).tensor();
        if (wanted.dtype() == DType.F64) {
            compareSums(doubles(wanted), doubles(got), tolerance.number("sums"), name);
        } else if (wanted.dtype() == DType.F32) {
            assertArrayEquals(wanted.toFloats(), got.toFloats(), (float) tolerance.number("values"), name);
        } else {
            assertEquals(wanted.longs(), got.longs(), name);
        }
    }

    private static void compareSums(double[] expected, double[] found, double tolerance, String name) {
        double largest = Arrays.stream(expected).map(Math::abs).max().orElse(0);
        assertArrayEquals(expected, found, tolerance * largest, name);
    }

    private static double[] doubles(Tensor tensor) {
        double[] found = new double[tensor.size()];
        tensor.doubles().get(found);
        return found;
    }

    @Test
    void aTaskStoppedTenTimesAtRandomStepsEndsWithTheSameBits() throws IOException {
        Random random = new Random(7);
        for (JsonObject example : cases()) {
            JsonObject document = example.object("plan");
            ClientPlan plan = longer(ClientPlan.of(document));
            Trained straight = trainer("none", 1e9).train(plan, left -> { });
            String checkpoint = "checkpoint-" + plan.rule() + plan.round();
            for (int stops = 0; stops < 10; stops++) {
                AtomicInteger left = new AtomicInteger(1 + random.nextInt(straight.steps() / 11));
                assertThrows(Interrupts.Stopped.class, () -> trainer(checkpoint, random.nextInt(2)).train(plan, rest -> {
                    if (left.getAndDecrement() == 0) {
                        throw new Interrupts.Stopped();
                    }
                }), example.text("name"));
            }
            Trained resumed = trainer(checkpoint, 0).train(plan, rest -> { });
            assertEquals(straight.loss(), resumed.loss(), example.text("name"));
            assertEquals(straight.accuracy(), resumed.accuracy(), example.text("name"));
            assertEquals(straight.metrics(), resumed.metrics(), example.text("name"));
            assertArrayEquals(bytes(straight), bytes(resumed), example.text("name"));
            assertArrayEquals(BodyWriter.toBytes(Body.weights(straight.result().own())),
                BodyWriter.toBytes(Body.weights(resumed.result().own())), example.text("name"));
        }
    }

    /** The same plan with 33 steps or more, none of which ends with an epoch alone. */
    private static ClientPlan longer(ClientPlan plan) {
        return new ClientPlan(plan.taskId(), plan.deviceId(), plan.round(), plan.rounds(), plan.model(), plan.mask(),
            plan.maskBody(), plan.tensors(), plan.graph(), plan.weights(), plan.extras(), plan.inference(), plan.rule(),
            plan.settings(), LocalRule.onlyForward(plan.rule()) ? new LocalWork(1, 1, null) : new LocalWork(8, 6, 38),
            plan.seed(), 600, null, 0);
    }

    @Test
    void noiseIsDrawnOnceForATask() throws IOException {
        Map<String, Object> rule = Map.of("name", "feature_sums", "settings", Map.of("clip", 2.0, "noise", 0.5));
        Map<String, Object> fields = GoldenTasks.forwardPlan(0, Map.of("rule", rule));
        ClientPlan plan = ClientPlan.of(JsonReader.object(JsonText.write(fields)));
        AtomicInteger left = new AtomicInteger(3);
        assertThrows(Interrupts.Stopped.class, () -> trainer("stopped", 1e9).train(plan, rest -> {
            if (left.getAndDecrement() == 0) {
                throw new Interrupts.Stopped();
            }
        }));
        byte[] saved = Files.readAllBytes(folder.resolve("stopped"));
        byte[] first = bytes(trainer("stopped", 1e9).train(plan, rest -> { }));
        Files.write(folder.resolve("stopped"), saved);
        Trained again = trainer("stopped", 1e9).train(plan, rest -> { });
        assertArrayEquals(first, bytes(again));
        assertEquals(0.0, again.loss());
        assertFalse(Arrays.equals(first, bytes(trainer("another", 1e9).train(plan, rest -> { }))));
    }

    @Test
    void aRuleThatReadsNoExtrasRefusesThem() {
        Map<String, Object> extras = Map.of("extras", GoldenTasks.forwardPlan(2, Map.of()).get("extras"));
        for (Map<String, Object> fields : List.of(GoldenTasks.plan(0, extras), GoldenTasks.forwardPlan(0, extras))) {
            ClientPlan plan = ClientPlan.of(JsonReader.object(JsonText.write(fields)));
            assertThrows(Unsupported.class, () -> trainer("none", 1e9).train(plan, left -> { }));
        }
    }

    private static byte[] bytes(Trained trained) {
        return BodyWriter.toBytes(new Body("update", Collections.emptySortedMap(), null, trained.result().sent()));
    }

    @Test
    void aDamagedCheckpointIsIgnored() throws IOException {
        ClientPlan plan = ClientPlan.of(golden.objects("cases").get(0).object("plan"));
        Files.write(folder.resolve("checkpoint"), new byte[100]);
        Map<String, Double> metrics = trainer("checkpoint", 1e9).train(plan, left -> { }).metrics();
        assertEquals(trainer("none", 1e9).train(plan, left -> { }).metrics(), metrics);
    }
}
