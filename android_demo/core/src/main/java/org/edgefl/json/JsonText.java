package org.edgefl.json;

import java.util.Iterator;
import java.util.Map;

/** Writes JSON in ASCII, without spaces, in the order that the maps have. */
public final class JsonText {
    private static final String HEX = "0123456789abcdef";

    private JsonText() {}

    /** Write a value of maps, iterables, texts, numbers, truth values and nulls. */
    public static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    /** Write text in quotes, with escapes for everything that is not a printable ASCII character. */
    public static void quote(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char next = text.charAt(i);
            if (next == '"' || next == '\\') {
                out.append('\\').append(next);
            } else if (next >= ' ' && next <= '~') {
                out.append(next);
            } else {
                escape(next, out);
            }
        }
        out.append('"');
    }

    private static void escape(char next, StringBuilder out) {
        int known = "\b\f\n\r\t".indexOf(next);
        if (known >= 0) {
            out.append('\\').append("bfnrt".charAt(known));
            return;
        }
        out.append("\\u");
        for (int shift = 12; shift >= 0; shift -= 4) {
            out.append(HEX.charAt((next >> shift) & 15));
        }
    }

    private static void write(Object value, StringBuilder out) {
        if (value == null || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof CharSequence text) {
            quote(text.toString(), out);
        } else if (value instanceof Number number) {
            writeNumber(number, out);
        } else if (value instanceof Map<?, ?> map) {
            writeMap(map, out);
        } else if (value instanceof Iterable<?> items) {
            writeItems(items, out);
        } else {
            throw new IllegalArgumentException("not a JSON value: " + value.getClass());
        }
    }

    private static void writeNumber(Number number, StringBuilder out) {
        double value = number.doubleValue();
        if (Double.isNaN(value) || Double.isInfinite(value)) {
            throw new IllegalArgumentException("JSON has no number for " + number);
        }
        out.append(number);
    }

    private static void writeMap(Map<?, ?> map, StringBuilder out) {
        out.append('{');
        for (Iterator<? extends Map.Entry<?, ?>> i = map.entrySet().iterator(); i.hasNext();) {
            Map.Entry<?, ?> entry = i.next();
            quote((String) entry.getKey(), out);
            out.append(':');
            write(entry.getValue(), out);
            out.append(i.hasNext() ? "," : "");
        }
        out.append('}');
    }

    private static void writeItems(Iterable<?> items, StringBuilder out) {
        out.append('[');
        for (Iterator<?> i = items.iterator(); i.hasNext();) {
            write(i.next(), out);
            out.append(i.hasNext() ? "," : "");
        }
        out.append(']');
    }
}
