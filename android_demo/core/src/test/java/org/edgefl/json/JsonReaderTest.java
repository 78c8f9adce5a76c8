package org.edgefl.json;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a stranger may send, and what not. */
class JsonReaderTest {
    @Test
    void aNameIsOnlyAName() {
        JsonObject read = JsonReader.object("{\"__proto__\": 1, \"constructor\": {\"hashCode\": 2.5}}");
        assertEquals(1, read.whole("__proto__"));
        assertEquals(2.5, read.object("constructor").number("hashCode"));
    }

    @Test
    void whatIsWrittenIsReadAgain() {
        String text = "{\"a\":[1,-2,3.5,1.0E-7,true,null],\"b\":\"\\u00fc\\n\\\"\\\\\\u007f\"}";
        assertEquals(text, JsonText.write(JsonReader.value(text)));
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "", "{", "{}x", "{\"a\":1,}", "[1,]", "{\"a\":1,\"a\":2}", "01", "1.", ".5", "+1", "NaN", "Infinity", "1e999",
        "'a'", "\"\\x\"", "\"\\u12g4\"", "\"a\nb\"", "tru", "{1:2}", "\"\\uff1\""})
    void whatIsNotJsonIsRefused(String text) {
        assertThrows(InvalidJson.class, () -> JsonReader.value(text));
    }

    @Test
    void depthIsBounded() {
        assertThrows(InvalidJson.class, () -> JsonReader.value("[".repeat(100_000)));
        JsonReader.value("[".repeat(60) + "]".repeat(60));
    }

    @Test
    void bytesThatAreNotUtf8AreRefused() {
        byte[] bytes = "{\"a\": \"x\"}".getBytes(StandardCharsets.UTF_8);
        bytes[7] = (byte) 0xc0;
        assertThrows(InvalidJson.class, () -> JsonReader.object(bytes));
    }

    @Test
    void aFieldOfAnotherTypeIsNamed() {
        JsonObject read = JsonReader.object("{\"plan\": {\"round\": \"7\"}}");
        InvalidJson error = assertThrows(InvalidJson.class, () -> read.object("plan").whole("round"));
        assertEquals("'plan'.round must be a whole number", error.getMessage());
    }
}
