package org.edgefl.values;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.EdgeFLError;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;
import org.junit.jupiter.api.Test;

/** What a sample is comes from a stranger: a document that could ask for any memory is refused as a whole. */
class SampleSpecTest {
    private static Map<String, Object> document(String field, Object value) {
        Map<String, Object> fields = new HashMap<>();
        fields.put("shape", List.of(3L, 2L, 2L));
        fields.put("dtype", "float32");
        fields.put("raw_dtype", "uint8");
        fields.put("normalisation", normalisation(3, 0.5));
        fields.put("classes", 10L);
        fields.put("example", Map.of("raw", Base64.getEncoder().encodeToString(new byte[12])));
        fields.put(field, value);
        return fields;
    }

    private static Map<String, Object> normalisation(int channels, double std) {
        return Map.of("mean", Collections.nCopies(channels, 0.5),
            "std", Collections.nCopies(channels, std), "scale", 255.0);
    }

    private static SampleSpec read(String field, Object value) {
        return SampleSpec.of(JsonReader.object(JsonText.write(document(field, value))));
    }

    private static void assertRefused(String field, Object value) {
        assertThrows(EdgeFLError.class, () -> read(field, value), field + " " + value);
    }

    @Test
    void aDocumentWithinTheBoundsIsRead() {
        assertEquals(65_536, read("classes", 65_536L).classes());
        assertEquals(1, read("normalisation", normalisation(1, 0.5)).normalisation().mean().length);
    }

    @Test
    void shapesAndClassesThatNobodyHasMemoryForAreRefused() {
        assertRefused("classes", 65_537L);
        assertRefused("classes", 2_147_483_647L);
        assertRefused("shape", List.of());
        assertRefused("shape", List.of(1L, 0L, 2L));
        assertRefused("shape", List.of(1L, 20_000L, 20_000L));
        assertRefused("shape", List.of(1L, 1L, 1L, 1L, 1L, 1L, 1L, 1L, 1L));
    }

    @Test
    void typesAndNormalisationsThatDoNotFitAreRefused() {
        assertRefused("dtype", "float16");
        assertRefused("raw_dtype", "complex64");
        assertRefused("normalisation", normalisation(5, 0.5));
        assertRefused("normalisation", normalisation(1, 1e-300));
        assertRefused("dtype", "int64");
    }

    @Test
    void anExampleThatIsNotASampleIsRefused() {
        assertRefused("example", Map.of("raw", "%%%"));
        assertRefused("example", Map.of("raw", Base64.getEncoder().encodeToString(new byte[11])));
    }
}
