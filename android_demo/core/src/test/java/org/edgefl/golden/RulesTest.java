package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonText;
import org.edgefl.masks.Mask;
import org.edgefl.noise.Noise;
import org.edgefl.rules.LocalRule;
import org.edgefl.rules.RuleResult;
import org.edgefl.rules.Settings;
import org.edgefl.rules.State;
import org.edgefl.rules.StepResult;
import org.edgefl.rules.Task;
import org.edgefl.values.Submodel;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.Body;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.BodyWriter;
import org.edgefl.wire.DType;
import org.edgefl.wire.Digests;
import org.edgefl.wire.Names;
import org.edgefl.wire.Tensor;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** rules_*.json: recorded gradients in, the state after every step and the bytes of the update out, to the bit. */
class RulesTest {
    @ParameterizedTest
    @ValueSource(strings = {"rules_sgd.json", "rules_fine_tune.json", "rules_masked_noise.json"})
    void everyStepIsEqualToTheBit(String file) {
        JsonObject golden = GoldenFiles.json(file);
        List<JsonObject> cases = golden.objects("cases");
        assertTrue(cases.size() > 3);
        for (JsonObject example : cases) {
            new Replay(golden, example).run();
        }
    }

    /** One case of a golden file. */
    private static final class Replay {
        private final JsonObject golden;
        private final JsonObject example;
        private final String name;
        private final JsonObject start;
        private final Submodel submodel;
        private final Task task;
        private final LocalRule rule;
        private final State state;

        Replay(JsonObject golden, JsonObject example) {
            this.golden = golden;
            this.example = example;
            this.name = example.text("name");
            this.start = golden.object("starts").object(example.text("start"));
            JsonObject document = golden.objects("submodels").get(example.count("submodel", 0));
            this.submodel = Submodel.parse(text(document).getBytes(StandardCharsets.UTF_8));
            Mask mask = Mask.of(BodyReader.read(ByteBuffer.wrap(Base64.getDecoder().decode(start.text("mask_body")))));
            this.task = new Task(submodel, mask.held(), Long.parseUnsignedLong(example.text("seed")),
                example.count("round", 0), example.count("rounds", 1), example.count("steps", 1));
            JsonObject rules = example.object("rule");
            this.rule = LocalRule.of(rules.text("name"), new Settings(rules.object("settings")), task);
            Map<String, Tensor> weights = new HashMap<>();
            submodel.tensors().forEach(tensor ->
                weights.put(tensor.name(), array(tensor, start.object("weights").text(tensor.name()))));
            this.state = State.of(weights);
        }

        private static String text(JsonObject document) {
            Map<String, Object> fields = new HashMap<>();
            document.names().forEach(field -> fields.put(field, document.get(field)));
            return JsonText.write(fields);
        }

        private static Tensor array(SubmodelTensor tensor, String base64) {
            return Tensor.of(tensor.dtype(), tensor.shape(), ByteBuffer.wrap(Base64.getDecoder().decode(base64)));
        }

        void run() {
            List<JsonObject> trace = example.objects("trace");
            assertEquals(task.steps(), trace.size(), name);
            Map<String, Tensor> forward = rule.forward(state);
            for (int step = 0; step < trace.size(); step++) {
                JsonObject expected = trace.get(step);
                rule.prepare(state, step);
                if (expected.has("forward")) {
                    check(expected.object("forward"), forward, "forward pass of step " + step);
                }
                StepResult result = recorded(step);
                assertEquals(expected.number("loss"), result.loss(), 1e-7, name);
                rule.step(state, step, result, null);
                check(expected.object("weights"), state.weights(), "weights after step " + step);
                check(expected.object("memory"), state.memory(), "memory after step " + step);
            }
            finish();
        }

        private void finish() {
            RuleResult result = rule.finish(state);
            check(example.object("own"), result.own(), "own model");
            JsonObject metrics = example.object("metrics");
            metrics.names().forEach(metric ->
                assertEquals(metrics.number(metric), result.metrics().get(metric), 1e-15, name + metric));
            SortedMap<String, String> about = new TreeMap<>(Names.UTF8_ORDER);
            about.put("result", golden.text("result"));
            about.put("model", Digests.of(golden.text("model").getBytes(StandardCharsets.UTF_8)));
            about.put("mask", start.text("mask"));
            byte[] body = BodyWriter.toBytes(new Body("update", about, task.seed(), result.sent()));
            assertArrayEquals(Base64.getDecoder().decode(example.text("body")), body, name);
        }

        private void check(JsonObject expected, Map<String, Tensor> found, String what) {
            for (String tensor : expected.names()) {
                byte[] bytes = new byte[found.get(tensor).bytes().remaining()];
                found.get(tensor).bytes().get(bytes);
                assertArrayEquals(
                    Base64.getDecoder().decode(expected.text(tensor)), bytes, name + ": " + what + ", " + tensor);
            }
        }

        private StepResult recorded(int step) {
            JsonObject source = example.object("recorded");
            long seed = Long.parseUnsignedLong(source.text("seed"));
            float bound = (float) source.number("bound");
            Map<String, Tensor> gradients = new HashMap<>();
            Map<String, Tensor> statistics = new HashMap<>();
            for (SubmodelTensor tensor : submodel.tensors()) {
                if (!tensor.trained()) {
                    continue;
                }
                Tensor made = Tensor.zeros(tensor.dtype(), tensor.shape());
                for (int i = 0; i < made.size(); i++) {
                    if (made.dtype() == DType.I64) {
                        made.longs().put(i, step + 1);
                    } else if (tensor.isStatistic()) {
                        made.floats().put(i, Noise.unit(Noise.derive(seed, "statistic", step, tensor.name()), i));
                    } else {
                        long stream = Noise.derive(seed, "gradient", step, tensor.name());
                        made.floats().put(i, Noise.symmetric(stream, i, bound));
                    }
                }
                (tensor.isStatistic() ? statistics : gradients).put(tensor.name(), made);
            }
            return new StepResult(Noise.unit(Noise.derive(seed, "loss"), step), gradients, statistics);
        }
    }
}
