package org.edgefl.json;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A JSON object with typed fields. What is missing or has another type is an error that names the field.
 *
 * <p>Fields that nobody asks for are ignored, as docs/stability.md promises newer coordinators.
 */
public final class JsonObject {
    private final Map<String, Object> fields;
    private final String where;

    private JsonObject(Map<String, Object> fields, String where) {
        this.fields = fields;
        this.where = where;
    }

    /** Wrap what {@link JsonReader} read. */
    static JsonObject of(Map<?, ?> map, String where) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            fields.put((String) entry.getKey(), entry.getValue());
        }
        return new JsonObject(fields, where);
    }

    /** The names of all fields, in the order of the text. */
    public Set<String> names() {
        return Collections.unmodifiableSet(fields.keySet());
    }

    /** Return all fields as they were read, for writing them again. */
    public Map<String, Object> toJson() {
        return Collections.unmodifiableMap(fields);
    }

    /** Return whether a field is there and not null. */
    public boolean has(String name) {
        return fields.get(name) != null;
    }

    /** Return a field as it was read, or null. */
    public Object get(String name) {
        return fields.get(name);
    }

    /** Return a text. */
    public String text(String name) {
        return (String) typed(name, String.class, "text");
    }

    /** Return a text, or null. */
    public String textOrNull(String name) {
        return has(name) ? text(name) : null;
    }

    /** Return a number that is written as a whole one; 3.0 is not. */
    public long whole(String name) {
        return toWhole(required(name), place(name));
    }

    /** Return a whole number that fits an int and is at least {@code least}. */
    public int count(String name, int least) {
        long value = whole(name);
        if (value < least || value > Integer.MAX_VALUE) {
            throw new InvalidJson(place(name) + " is " + value + ", and must be from " + least + " to 2147483647");
        }
        return (int) value;
    }

    /** Return a number. */
    public double number(String name) {
        return ((Number) typed(name, Number.class, "a number")).doubleValue();
    }

    /** Return a number, or the default if the field is missing or null. */
    public double number(String name, double otherwise) {
        return has(name) ? number(name) : otherwise;
    }

    /** Return a truth value, or the default if the field is missing or null. */
    public boolean flag(String name, boolean otherwise) {
        return has(name) ? (Boolean) typed(name, Boolean.class, "true or false") : otherwise;
    }

    /** Return an object. */
    public JsonObject object(String name) {
        return of((Map<?, ?>) typed(name, Map.class, "an object"), place(name));
    }

    /** Return an object, or null. */
    public JsonObject objectOrNull(String name) {
        return has(name) ? object(name) : null;
    }

    /** Return an array. */
    public List<?> list(String name) {
        return (List<?>) typed(name, List.class, "an array");
    }

    /** Return an array of objects. */
    public List<JsonObject> objects(String name) {
        List<JsonObject> found = new ArrayList<>();
        for (Object item : list(name)) {
            if (!(item instanceof Map<?, ?> map)) {
                throw new InvalidJson(place(name) + " must have objects only");
            }
            found.add(of(map, place(name) + "[" + found.size() + "]"));
        }
        return found;
    }

    /** Return an array of texts. */
    public List<String> texts(String name) {
        List<String> found = new ArrayList<>();
        for (Object item : list(name)) {
            if (!(item instanceof String text)) {
                throw new InvalidJson(place(name) + " must have texts only");
            }
            found.add(text);
        }
        return found;
    }

    /** Return an array of whole numbers. */
    public long[] wholes(String name) {
        return toWholes(list(name), place(name));
    }

    /** Return an array of numbers. */
    public double[] numbers(String name) {
        List<?> items = list(name);
        double[] found = new double[items.size()];
        for (int i = 0; i < found.length; i++) {
            if (!(items.get(i) instanceof Number number)) {
                throw new InvalidJson(place(name) + " must have numbers only");
            }
            found[i] = number.doubleValue();
        }
        return found;
    }

    /** Return an array's whole numbers. */
    public static long[] toWholes(List<?> items, String place) {
        long[] found = new long[items.size()];
        for (int i = 0; i < found.length; i++) {
            found[i] = toWhole(items.get(i), place);
        }
        return found;
    }

    private static long toWhole(Object value, String place) {
        if (value instanceof Long number) {
            return number;
        }
        throw new InvalidJson(place + " must be a whole number");
    }

    private Object required(String name) {
        if (!has(name)) {
            throw new InvalidJson(place(name) + " is missing");
        }
        return fields.get(name);
    }

    private Object typed(String name, Class<?> type, String expected) {
        Object value = required(name);
        if (!type.isInstance(value)) {
            throw new InvalidJson(place(name) + " must be " + expected);
        }
        return value;
    }

    private String place(String name) {
        return where.equals("the document") ? "'" + name + "'" : where + "." + name;
    }
}
