package org.edgefl.rules;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.edgefl.json.JsonReader;
import org.edgefl.values.Submodel;
import org.edgefl.wire.DType;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Tensor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Sums by hand and with noise, and what a plan may not ask of rules that train nothing. */
class ForwardRulesTest {
    private static final String WEIGHT = tensor("w", "[3, 2]", "head", "head");
    private static final String BIAS = tensor("b", "[3]", "head", "head");
    private static final String BODY = tensor("body", "[2, 4]", "weight", "body");

    private static String tensor(String name, String shape, String role, String layer) {
        return "{\"name\": \"" + name + "\", \"shape\": " + shape + ", \"dtype\": \"float32\", \"role\": \"" + role
            + "\", \"layer\": \"" + layer + "\", \"trained\": false, \"sent\": null}";
    }

    private static String payload(String name, String shape) {
        return "{\"name\": \"" + name + "\", \"shape\": " + shape + ", \"codec\": \"dense\", \"dtype\": \"float64\"}";
    }

    private static Task task(String tensors, String payloads, Map<String, Tensor> extras) {
        String document = "{\"schema\": \"edgefl.submodel/1\", \"tensors\": [" + tensors + "], \"payloads\": ["
            + payloads + "]}";
        return new Task(Submodel.parse(document.getBytes(StandardCharsets.UTF_8)), Map.of(), 1, 0, 1, 1, extras);
    }

    private static LocalRule rule(String name, String settings, Task task) {
        return LocalRule.of(name, new Settings(JsonReader.object(settings)), task);
    }

    private static LocalRule rule(String name, String settings) {
        Map<String, Tensor> shares = Map.of("shares", Tensor.zeros(DType.F32, 3));
        Map<String, Tensor> extras = name.equals("class_prior") ? shares : Map.of();
        return rule(name, settings, task(BODY + "," + WEIGHT + "," + BIAS, "", extras));
    }

    private static State state() {
        Map<String, Tensor> weights = new HashMap<>();
        weights.put("body", Tensor.zeros(DType.F32, 2, 4));
        weights.put("w", Tensor.zeros(DType.F32, 3, 2));
        weights.put("b", Tensor.zeros(DType.F32, 3));
        return State.of(weights);
    }

    private static double step(LocalRule rule, State state, float[][] features, long... labels) {
        return rule.step(state, 0, new StepResult(features), Tensor.ofLongs(labels, labels.length));
    }

    private static double[] sent(LocalRule rule, State state, String name) {
        Tensor sum = ((Encoded.Dense) rule.finish(state).sent().get(name)).tensor();
        double[] found = new double[sum.size()];
        sum.doubles().get(found);
        return found;
    }

    @Test
    void threeSamplesByHand() {
        LocalRule rule = rule("feature_sums", "{}");
        State state = state();
        assertEquals(Math.log(3), step(rule, state, new float[][] {{1, 2}, {3, 4}}, 0, 2), 1e-15);
        step(rule, state, new float[][] {{0, 5}}, 2);
        assertArrayEquals(new double[] {10, 14, 4, 45, 11, 3}, sent(rule, state, "sums/gram"));
        assertArrayEquals(new double[] {1, 0, 3, 2, 0, 9, 1, 0, 2}, sent(rule, state, "sums/products"));
        assertArrayEquals(new double[] {1, 0, 2}, sent(rule, state, "sums/squares"));
        assertSame(state.weights(), rule.finish(state).own());
    }

    @Test
    void aGradientByHand() {
        LocalRule rule = rule("head_gradients", "{}");
        State state = state();
        step(rule, state, new float[][] {{3, 6}}, 1);
        assertArrayEquals(new double[] {1, -2, 1, 2, -4, 2, 1 / 3.0, -2 / 3.0, 1 / 3.0},
            sent(rule, state, "sums/gradient"), 1e-15);
    }

    @ParameterizedTest
    @CsvSource({"feature_sums, sums/gram, 2.6457513110645907", "head_gradients, sums/gradient, 2.0"})
    void noiseIsAsLargeAsAsked(String name, String sum, double most) {
        LocalRule rule = rule(name, "{\"clip\": 1, \"noise\": 2.0}");
        double squares = 0;
        for (int draw = 0; draw < 4000; draw++) {
            State state = state();
            assertEquals(0.0, step(rule, state, new float[][] {{0, 0}}, 0));
            squares += Math.pow(sent(rule, state, sum)[0], 2);
        }
        assertEquals(2 * most, Math.sqrt(squares / 4000), 0.1 * 2 * most);
        State first = state();
        State second = state();
        step(rule, first, new float[][] {{0, 0}}, 0);
        step(rule, second, new float[][] {{0, 0}}, 0);
        assertNotEquals(sent(rule, first, sum)[0], sent(rule, second, sum)[0]);
    }

    @Test
    void theOwnModelIsAnotherAndTheDownloadedOneStaysAsItIs() {
        LocalRule rule = rule("class_prior", "{\"least_share\": 0.25}");
        State state = state();
        step(rule, state, new float[0][], 0, 0, 2);
        for (int twice = 0; twice < 2; twice++) { // a finish that is interrupted is repeated
            Map<String, Tensor> own = rule.finish(state).own();
            assertArrayEquals(new float[] {(float) Math.log(2 / 3.0 / 0.25), 0, (float) Math.log(1 / 3.0 / 0.25)},
                own.get("b").toFloats(), 1e-7f);
            assertSame(state.weights().get("w"), own.get("w"));
        }
        assertArrayEquals(new float[3], state.weights().get("b").toFloats());
    }

    @Test
    void sumsThatAreNotFiniteAreNotSent() {
        LocalRule rule = rule("feature_sums", "{\"clip\": 1, \"noise\": 1}");
        State state = state();
        step(rule, state, new float[][] {{Float.NaN, 0}}, 0);
        assertThrows(Diverged.class, () -> rule.finish(state));
    }

    @Test
    void aGraphThatReturnsSomethingElseIsRefused() {
        LocalRule rule = rule("feature_sums", "{}");
        assertThrows(Unsupported.class, () -> step(rule, state(), new float[][] {{1, 2, 3}}, 0));
        assertThrows(Unsupported.class, () -> step(rule, state(), new float[][] {{1, 2}}, 0, 1));
        assertThrows(Unsupported.class, () -> step(rule, state(), new float[0][], 0));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "{\"noise\": 0.5}", "{\"clip\": 0}", "{\"clip\": -1}", "{\"clip\": \"1\"}", "{\"clip\": 1, \"noise\": -1}",
        "{\"learning_rate\": 0.1}", "{\"least_share\": 0.1}"})
    void settingsThatAreNotKnownOrNotAllowedAreRefused(String settings) {
        for (String name : new String[] {"feature_sums", "head_gradients"}) {
            assertThrows(Unsupported.class, () -> rule(name, settings));
            rule(name, "{\"clip\": null, \"noise\": 0}");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"{\"clip\": 1}", "{\"least_share\": 0}", "{\"least_share\": 0.6}"})
    void settingsOfAPriorAreChecked(String settings) {
        assertThrows(Unsupported.class, () -> rule("class_prior", settings));
    }

    @Test
    void aHeadThatIsNotOneLinearLayerIsRefused() {
        String[] others = {
            BODY, BIAS, WEIGHT + "," + WEIGHT.replace("\"w\"", "\"v\""),
            WEIGHT + "," + tensor("b", "[2]", "head", "head"), WEIGHT + "," + tensor("b", "[3]", "head", "other"), tensor("w", "[3, 2, 1]", "head", "head"),
            WEIGHT.replace("float32", "float64")};
        for (String tensors : others) {
            assertThrows(Unsupported.class, () -> rule("feature_sums", "{}", task(tensors, "", Map.of())), tensors);
        }
        rule("feature_sums", "{}", task(WEIGHT, "", Map.of()));
    }

    @Test
    void anUpdateOfAnythingElseIsRefused() {
        String all = payload("sums/gram", "[6]") + "," + payload("sums/products", "[3, 3]") + ","
            + payload("sums/squares", "[3]");
        String tensors = WEIGHT + "," + BIAS;
        rule("feature_sums", "{}", task(tensors, all, Map.of()));
        String[] others = {
            all.replace("[6]", "[9]"), all.replace("dense", "bits"), all.replace("float64", "float32"),
            all.replace("gram", "moments")};
        for (String payloads : others) {
            Task asked = task(tensors, payloads, Map.of());
            assertThrows(Unsupported.class, () -> rule("feature_sums", "{}", asked), payloads);
        }
        assertThrows(Unsupported.class, () -> rule("head_gradients", "{}", task(tensors, all, Map.of())));
        String trained = tensors.replace("\"sent\": null", "\"sent\": \"dense\"");
        assertThrows(Unsupported.class, () -> rule("feature_sums", "{}", task(trained, all, Map.of())));
    }

    @Test
    void arraysOfThePlanMustFit() {
        Tensor matrix = Tensor.zeros(DType.F32, 3, 2);
        String tensors = WEIGHT + "," + BIAS;
        rule("head_gradients", "{}", task(tensors, "", Map.of("w", matrix, "b", Tensor.zeros(DType.F32, 3))));
        assertThrows(Unsupported.class, () -> rule("head_gradients", "{}", task(tensors, "", Map.of("b", matrix))));
        assertThrows(Unsupported.class, () -> rule("head_gradients", "{}", task(tensors, "", Map.of("v", matrix))));
        Map<String, Tensor> whole = Map.of("w", Tensor.zeros(DType.I64, 3, 2));
        assertThrows(Unsupported.class, () -> rule("head_gradients", "{}", task(tensors, "", whole)));
        Map<String, Tensor> shares = Map.of("shares", Tensor.zeros(DType.F32, 3));
        rule("class_prior", "{}", task(tensors, "", shares));
        assertThrows(Unsupported.class, () -> rule("class_prior", "{}", task(tensors, "", Map.of())));
        assertThrows(Unsupported.class, () -> rule("class_prior", "{}", task(tensors, "", Map.of("shares", matrix))));
        assertThrows(Unsupported.class, () -> rule("class_prior", "{}", task(WEIGHT, "", shares)));
    }
}
