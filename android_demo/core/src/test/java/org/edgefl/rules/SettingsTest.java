package org.edgefl.rules;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Map;
import org.edgefl.json.JsonReader;
import org.edgefl.values.Submodel;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A rule or setting that this client does not have is refused, never ignored. */
class SettingsTest {
    private static final Task TASK = new Task(new Submodel(List.of(), List.of()), Map.of(), 1, 0, 1, 1);

    private static LocalRule rule(String name, String settings) {
        return LocalRule.of(name, new Settings(JsonReader.object(settings)), TASK);
    }

    @Test
    void aNumberMayArriveWithoutADecimalPoint() {
        rule("sgd", "{\"learning_rate\": 1, \"momentum\": 0, \"clip_norm\": null, \"codec\": \"sparse\"}");
        rule("fine_tune", "{\"head\": \"head_only\"}");
        rule("masked_noise", "{\"masks\": \"signed\", \"bound\": null, \"masking\": \"deterministic\"}");
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "{\"warp\": 1}", "{\"learning_rate\": 0}", "{\"learning_rate\": \"0.1\"}", "{\"momentum\": 1.5}",
        "{\"momentum\": true}", "{\"nesterov\": 1}", "{\"schedule\": \"zigzag\"}", "{\"decay_at\": \"half\"}",
        "{\"clip_norm\": 0}", "{\"clip_norm\": -1}", "{\"codec\": \"counts\"}", "{\"weight_decay\": -0.1}"})
    void whatIsNotKnownOrNotAllowedIsRefused(String settings) {
        assertThrows(Unsupported.class, () -> rule("sgd", settings));
    }

    @Test
    void anotherRuleIsRefused() {
        assertThrows(Unsupported.class, () -> rule("channel_pruning", "{}"));
    }
}
