package org.edgefl.rules;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.json.JsonReader;
import org.edgefl.values.Submodel;
import org.edgefl.wire.DType;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Tensor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Sums of (weight x gradient)^2: by hand, and what else a plan may not ask for. */
class SensitivityTest {
    private static final String PAYLOAD = "{\"name\": \"sensitivity/0/w\", \"shape\": [2], \"codec\": \"dense\","
        + " \"dtype\": \"float32\"}";

    private static Task task(String payloads) {
        String document = "{\"schema\": \"edgefl.submodel/1\", \"tensors\": ["
            + "{\"name\": \"w\", \"shape\": [2, 2], \"dtype\": \"float32\", \"role\": \"weight\", \"layer\": \"a\","
            + " \"trained\": true, \"sent\": \"dense\"},"
            + "{\"name\": \"frozen\", \"shape\": [2], \"dtype\": \"float32\", \"role\": \"weight\", \"layer\": \"b\","
            + " \"trained\": false, \"sent\": null}], \"payloads\": [" + payloads + "]}";
        return new Task(Submodel.parse(document.getBytes(StandardCharsets.UTF_8)), Map.of(), 1, 0, 1, 2);
    }

    private static LocalRule rule(String name, String settings, String payloads) {
        return LocalRule.of(name, new Settings(JsonReader.object(settings)), task(payloads));
    }

    private static Tensor tensor(float... values) {
        Tensor made = Tensor.zeros(DType.F32, 2, 2);
        made.floats().put(values);
        return made;
    }

    @Test
    void twoStepsByHand() {
        String both = PAYLOAD + "," + PAYLOAD.replace("/0/", "/1/");
        LocalRule rule = rule("sgd", "{\"learning_rate\": 0.5, \"sensitivity\": true}", both);
        Map<String, Tensor> weights = new HashMap<>();
        weights.put("w", tensor(1, 2, 3, 4));
        weights.put("frozen", Tensor.zeros(DType.F32, 2));
        State state = State.of(weights);
        rule.forward(state);
        rule.step(state, 0, new StepResult(1f, Map.of("w", tensor(2, 0, 1, 1)), Map.of()), null);
        rule.step(state, 1, new StepResult(1f, Map.of("w", tensor(5, 1, 2, 0)), Map.of()), null);
        // Weights before the second step: 0, 2, 2.5, 3.5. Squares: 4 + 0, 0 + 4, 9 + 25, 16 + 0.
        Map<String, Encoded> sent = rule.finish(state).sent();
        assertArrayEquals(new float[] {8, 50}, sums(sent, "sensitivity/0/w"));
        assertArrayEquals(new float[] {38, 20}, sums(sent, "sensitivity/1/w"));
        assertEquals(3, sent.size());
    }

    private static float[] sums(Map<String, Encoded> sent, String name) {
        return ((Encoded.Dense) sent.get(name)).tensor().toFloats();
    }

    @Test
    void withoutTheSettingNoPayloadIsKnown() {
        for (String name : List.of("sgd", "masked_noise", "fine_tune")) {
            rule(name, "{}", "");
            assertThrows(Unsupported.class, () -> rule(name, "{}", PAYLOAD));
        }
        assertThrows(Unsupported.class, () -> rule("fine_tune", "{\"sensitivity\": true}", ""));
        assertThrows(Unsupported.class, () -> rule("sgd", "{\"sensitivity\": 1}", ""));
        rule("masked_noise", "{\"sensitivity\": true}", PAYLOAD);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "sensitivity/2/w", "sensitivity/-1/w", "sensitivity//w", "sensitivity/0", "sensitivity/0/", "sensitivity/0/v",
        "sensitivity/0/frozen", "sensitivity/999999999999/w", "sensitivity/x/w", "w", "w:scale"})
    void payloadsThatAreNoSumsAlongAnAxisOfATrainedTensorAreRefused(String name) {
        String payload = PAYLOAD.replace("sensitivity/0/w", name);
        assertThrows(Unsupported.class, () -> rule("sgd", "{\"sensitivity\": true}", payload));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "\"shape\": [3]", "\"shape\": []", "\"shape\": [2, 2]", "\"codec\": \"bits\"", "\"dtype\": \"float64\"",
        "\"dtype\": null"})
    void formsThatTheSumsDoNotHaveAreRefused(String changed) {
        String field = changed.substring(0, changed.indexOf(':'));
        String payload = PAYLOAD.replaceAll(field + ": (\\[2\\]|\"[a-z0-9]+\")", changed);
        assertThrows(Unsupported.class, () -> rule("sgd", "{\"sensitivity\": true}", payload));
    }
}
