package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.edgefl.json.JsonObject;
import org.edgefl.noise.Noise;
import org.junit.jupiter.api.Test;

/** noise.json: words and numbers of the counter-based noise. */
class NoiseTest {
    private final JsonObject golden = GoldenFiles.json("noise.json");

    @Test
    void wordsAreEqual() {
        for (JsonObject example : golden.objects("bits")) {
            List<String> words = example.texts("words");
            for (int i = 0; i < words.size(); i++) {
                long word = Noise.bits(seed(example), start(example) + i);
                assertEquals(Long.parseUnsignedLong(words.get(i), 16), word);
            }
        }
    }

    @Test
    void unitNumbersAreEqual() {
        for (JsonObject example : golden.objects("unit")) {
            List<String> floats = example.texts("floats");
            for (int i = 0; i < floats.size(); i++) {
                float unit = Noise.unit(seed(example), start(example) + i);
                assertEquals(Integer.parseUnsignedInt(floats.get(i), 16), Float.floatToRawIntBits(unit));
            }
        }
    }

    @Test
    void symmetricNumbersAreEqual() {
        for (JsonObject example : golden.objects("symmetric")) {
            List<String> floats = example.texts("floats");
            for (int i = 0; i < floats.size(); i++) {
                float number = Noise.symmetric(seed(example), start(example) + i, (float) example.number("bound"));
                assertEquals(Integer.parseUnsignedInt(floats.get(i), 16), Float.floatToRawIntBits(number));
            }
        }
    }

    @Test
    void derivedSeedsAreEqual() {
        for (JsonObject example : golden.objects("derive")) {
            long derived = Noise.derive(seed(example), example.list("parts").toArray());
            assertEquals(example.text("derived"), Long.toUnsignedString(derived));
        }
    }

    private static long seed(JsonObject example) {
        return Long.parseUnsignedLong(example.text("seed"));
    }

    private static long start(JsonObject example) {
        return Long.parseUnsignedLong(example.text("start"));
    }
}
