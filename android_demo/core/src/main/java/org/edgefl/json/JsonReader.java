package org.edgefl.json;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A strict reader of JSON from strangers: bounded depth, no name twice, nothing beyond RFC 8259.
 *
 * <p>Objects become {@code Map}, arrays {@code List}, numbers {@code Long} if they are written as whole numbers of at
 * most 64 bits, else {@code Double}. A name is only a name, whatever it is called.
 */
public final class JsonReader {
    private static final int MOST_DEPTH = 64;

    private final String text;
    private int at;

    private JsonReader(String text) {
        this.text = text;
    }

    /** Read one object from UTF-8 bytes. */
    public static JsonObject object(byte[] utf8) {
        return object(decode(utf8));
    }

    /** Read one object from text. */
    public static JsonObject object(String text) {
        Object value = value(text);
        if (value instanceof Map<?, ?> map) {
            return JsonObject.of(map, "the document");
        }
        throw new InvalidJson("the document is not a JSON object");
    }

    /** Read any value from text. */
    public static Object value(String text) {
        JsonReader reader = new JsonReader(text);
        reader.skip();
        Object value = reader.read(0);
        reader.skip();
        if (reader.at != text.length()) {
            throw reader.error("more text after the end of the value");
        }
        return value;
    }

    /** Decode UTF-8 strictly. */
    public static String decode(byte[] utf8) {
        try {
            return StandardCharsets.UTF_8.newDecoder().onMalformedInput(CodingErrorAction.REPORT)
                .onUnmappableCharacter(CodingErrorAction.REPORT).decode(ByteBuffer.wrap(utf8)).toString();
        } catch (CharacterCodingException error) {
            throw new InvalidJson("the text is not valid UTF-8");
        }
    }

    private Object read(int depth) {
        if (depth > MOST_DEPTH) {
            throw error("nested more than " + MOST_DEPTH + " deep");
        }
        char next = peek();
        if (next == '{') {
            return readObject(depth);
        }
        if (next == '[') {
            return readArray(depth);
        }
        if (next == '"') {
            return readString();
        }
        if (next == '-' || (next >= '0' && next <= '9')) {
            return readNumber();
        }
        return readWord();
    }

    private Map<String, Object> readObject(int depth) {
        Map<String, Object> found = new LinkedHashMap<>();
        at++;
        skip();
        if (peek() == '}') {
            at++;
            return found;
        }
        while (true) {
            skip();
            if (peek() != '"') {
                throw error("a name must be text");
            }
            String name = readString();
            skip();
            take(':');
            skip();
            Object value = read(depth + 1);
            if (found.containsKey(name)) {
                throw error("the name '" + name + "' is there twice");
            }
            found.put(name, value);
            skip();
            if (peek() == '}') {
                at++;
                return found;
            }
            take(',');
        }
    }

    private List<Object> readArray(int depth) {
        List<Object> found = new ArrayList<>();
        at++;
        skip();
        if (peek() == ']') {
            at++;
            return found;
        }
        while (true) {
            skip();
            found.add(read(depth + 1));
            skip();
            if (peek() == ']') {
                at++;
                return found;
            }
            take(',');
        }
    }

    private String readString() {
        StringBuilder found = new StringBuilder();
        at++;
        while (true) {
            char next = peek();
            at++;
            if (next == '"') {
                return found.toString();
            }
            if (next < ' ') {
                throw error("a control character inside text");
            }
            found.append(next == '\\' ? readEscape() : next);
        }
    }

    private char readEscape() {
        char next = peek();
        at++;
        switch (next) {
            case '"', '\\', '/':
                return next;
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                int code = 0;
                for (int i = 0; i < 4; i++) {
                    int digit = Character.digit(peek(), 16);
                    if (digit < 0 || peek() > 'f') {
                        throw error("\\u needs four hexadecimal digits");
                    }
                    code = code * 16 + digit;
                    at++;
                }
                return (char) code;
            default:
                throw error("an unknown escape");
        }
    }

    private Object readNumber() {
        int start = at;
        if (peek() == '-') {
            at++;
        }
        int whole = digits();
        if (whole > 1 && text.charAt(at - whole) == '0') {
            throw error("a number with a leading zero");
        }
        boolean exact = true;
        if (at < text.length() && text.charAt(at) == '.') {
            exact = false;
            at++;
            digits();
        }
        if (at < text.length() && (text.charAt(at) == 'e' || text.charAt(at) == 'E')) {
            exact = false;
            at++;
            if (peek() == '+' || peek() == '-') {
                at++;
            }
            digits();
        }
        return toNumber(text.substring(start, at), exact);
    }

    private Object toNumber(String number, boolean exact) {
        if (exact && number.length() <= 20) {
            try {
                return Long.parseLong(number);
            } catch (NumberFormatException beyond64Bits) {
                return Double.parseDouble(number);
            }
        }
        double value = Double.parseDouble(number);
        if (Double.isInfinite(value)) {
            throw error("a number beyond what a double can hold");
        }
        return value;
    }

    private int digits() {
        int start = at;
        while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
            at++;
        }
        if (at == start) {
            throw error("a digit is missing");
        }
        return at - start;
    }

    private Object readWord() {
        for (String word : new String[] {"true", "false", "null"}) {
            if (text.startsWith(word, at)) {
                at += word.length();
                return word.equals("null") ? null : (Object) word.equals("true");
            }
        }
        throw error("not a value");
    }

    private void skip() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private char peek() {
        if (at >= text.length()) {
            throw error("the text ends too early");
        }
        return text.charAt(at);
    }

    private void take(char wanted) {
        if (peek() != wanted) {
            throw error("'" + wanted + "' is missing");
        }
        at++;
    }

    private InvalidJson error(String problem) {
        return new InvalidJson("not valid JSON at character " + at + ": " + problem);
    }
}
