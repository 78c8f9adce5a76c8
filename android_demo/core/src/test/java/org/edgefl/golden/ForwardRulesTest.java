package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonText;
import org.edgefl.rules.LocalRule;
import org.edgefl.rules.RuleResult;
import org.edgefl.rules.Settings;
import org.edgefl.rules.State;
import org.edgefl.rules.StepResult;
import org.edgefl.rules.Task;
import org.edgefl.values.Submodel;
import org.edgefl.wire.DType;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Tensor;
import org.junit.jupiter.api.Test;

/** Rules that only run the model forward: recorded features and labels in, sums or a bias out. */
class ForwardRulesTest {
    /** What a case ends with. */
    private record Outcome(RuleResult result, double[] losses) {}

    private static Outcome run(JsonObject golden, JsonObject example) {
        Map<String, Tensor> extras = tensors(example.objectOrNull("extras"));
        List<JsonObject> batches = example.objects("batches");
        Submodel submodel =
            Submodel.parse(JsonText.write(example.object("submodel").toJson()).getBytes(StandardCharsets.UTF_8));
        Task task = new Task(submodel, Map.of(), 1, 0, 1, batches.size(), extras);
        JsonObject named = example.object("rule");
        LocalRule rule = LocalRule.of(named.text("name"), new Settings(named.object("settings")), task);
        State state = State.of(tensors(golden.object("starts").object(example.text("start")).object("head")));
        rule.forward(state);
        double[] losses = new double[batches.size()];
        for (int step = 0; step < losses.length; step++) {
            JsonObject batch = batches.get(step);
            rule.prepare(state, step);
            float[][] features = batch.has("features") ? rows(batch.object("features")) : new float[0][];
            long[] labels = batch.wholes("labels");
            losses[step] = rule.step(state, step, new StepResult(features), Tensor.ofLongs(labels, labels.length));
        }
        return new Outcome(rule.finish(state), losses);
    }

    private static Map<String, Tensor> tensors(JsonObject arrays) {
        Map<String, Tensor> found = new HashMap<>();
        if (arrays != null) {
            arrays.names().forEach(name -> found.put(name, GoldenArrays.tensor(arrays.object(name))));
        }
        return found;
    }

    private static float[][] rows(JsonObject array) {
        float[] all = GoldenArrays.tensor(array).toFloats();
        int width = (int) array.wholes("shape")[1];
        float[][] rows = new float[all.length / width][];
        for (int i = 0; i < rows.length; i++) {
            rows[i] = Arrays.copyOfRange(all, i * width, (i + 1) * width);
        }
        return rows;
    }

    private static void checkLosses(JsonObject golden, JsonObject example, double[] found) {
        double[] expected = example.numbers("losses");
        for (int i = 0; i < expected.length; i++) {
            double allowed = golden.number("tolerance") * Math.max(1, expected[i]);
            assertEquals(expected[i], found[i], allowed, example.text("name"));
        }
    }

    private static Tensor sent(JsonObject example, RuleResult result, String name) {
        Tensor found = ((Encoded.Dense) result.sent().get(name)).tensor();
        assertArrayEquals(example.object("sums").object(name).wholes("shape"), found.shape(), example.text("name"));
        assertEquals(DType.F64, found.dtype());
        return found;
    }

    private static byte[] bytes(Tensor tensor) {
        ByteBuffer all = tensor.bytes();
        byte[] found = new byte[all.remaining()];
        all.get(found);
        return found;
    }

    private static double[] doubles(Tensor tensor) {
        double[] found = new double[tensor.size()];
        tensor.doubles().get(found);
        return found;
    }

    @Test
    void sumsAreEqualToTheBit() {
        JsonObject golden = GoldenFiles.json("rules_feature_sums.json");
        for (JsonObject example : golden.objects("cases")) {
            Outcome outcome = run(golden, example);
            JsonObject sums = example.object("sums");
            assertEquals(sums.names(), outcome.result().sent().keySet());
            for (String name : sums.names()) {
                assertArrayEquals(bytes(GoldenArrays.tensor(sums.object(name))),
                    bytes(sent(example, outcome.result(), name)), example.text("name") + ", " + name);
            }
            checkLosses(golden, example, outcome.losses());
        }
    }

    @Test
    void gradientsAreEqualButForTheirLastBits() {
        JsonObject golden = GoldenFiles.json("rules_head_gradients.json");
        for (JsonObject example : golden.objects("cases")) {
            Outcome outcome = run(golden, example);
            JsonObject sums = example.object("sums");
            assertEquals(sums.names(), outcome.result().sent().keySet());
            for (String name : sums.names()) {
                double[] expected = doubles(GoldenArrays.tensor(sums.object(name)));
                double largest = Arrays.stream(expected).map(Math::abs).max().orElse(0);
                assertArrayEquals(expected, doubles(sent(example, outcome.result(), name)),
                    golden.number("tolerance") * largest, example.text("name"));
            }
            checkLosses(golden, example, outcome.losses());
        }
    }

    @Test
    void aBiasIsTheNearestNumberOrItsNeighbour() {
        JsonObject golden = GoldenFiles.json("rules_class_prior.json");
        for (JsonObject example : golden.objects("cases")) {
            RuleResult result = run(golden, example).result();
            JsonObject own = example.object("own");
            for (String name : own.names()) {
                float[] expected = GoldenArrays.tensor(own.object(name)).toFloats();
                float[] found = result.own().get(name).toFloats();
                for (int i = 0; i < expected.length; i++) {
                    assertTrue(Math.abs(expected[i] - found[i]) <= Math.ulp(expected[i]), example.text("name"));
                }
            }
            assertTrue(result.sent().isEmpty());
        }
    }
}
