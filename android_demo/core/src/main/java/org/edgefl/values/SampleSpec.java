package org.edgefl.values;

import java.util.Arrays;
import java.util.Base64;
import org.edgefl.data.Normalisation;
import org.edgefl.json.InvalidJson;
import org.edgefl.json.JsonObject;
import org.edgefl.wire.Shape;

/**
 * What a sample of the federation is.
 *
 * @param shape the sizes of one sample, without the batch axis
 * @param dtype the type of {@code x}: {@code float32} or {@code int64}
 * @param rawDtype the type before normalisation, or null if the federation does not say
 * @param normalisation how raw values become x, or null
 * @param classes the number of classes
 */
public record SampleSpec(
        long[] shape, String dtype, String rawDtype, Normalisation normalisation, int classes, JsonObject example) {
    private static final int MOST_AXES = 8;
    private static final int MOST_NUMBERS = 1 << 28;
    private static final int MOST_CLASSES = 65_536;

    /** Read the document. It comes from a stranger and decides how much memory is asked for: everything is bounded. */
    public static SampleSpec of(JsonObject fields) {
        JsonObject rule = fields.objectOrNull("normalisation");
        Normalisation normalisation = rule == null ? null
            : new Normalisation(rule.numbers("mean"), rule.numbers("std"), rule.number("scale", 255));
        SampleSpec found = new SampleSpec(fields.wholes("shape"), fields.text("dtype"), fields.textOrNull("raw_dtype"),
            normalisation, fields.count("classes", 1), fields.objectOrNull("example"));
        found.checkShape();
        found.checkTypes();
        found.checkExample();
        return found;
    }

    private void checkShape() {
        boolean empty = Arrays.stream(shape).anyMatch(size -> size < 1);
        if (shape.length < 1 || shape.length > MOST_AXES || empty || Shape.size(shape) > MOST_NUMBERS) {
            throw new InvalidJson("a sample of the federation has the shape " + Shape.text(shape, " x "));
        }
        if (classes > MOST_CLASSES) {
            throw new InvalidJson("the federation has " + classes + " classes, and at most " + MOST_CLASSES
                + " are allowed");
        }
    }

    private void checkTypes() {
        if (!dtype.equals("float32") && !dtype.equals("int64")) {
            throw new InvalidJson("a sample of the federation has the type '" + dtype + "', which is not known");
        }
        if (rawDtype != null) {
            bytesOf(rawDtype);
        }
        int means = normalisation == null ? 1 : normalisation.mean().length;
        if ((means != 1 && means != shape[0]) || (normalisation != null && dtype.equals("int64"))) {
            throw new InvalidJson("the federation's normalisation does not fit its samples");
        }
    }

    private void checkExample() {
        String raw = example == null ? null : example.text("raw");
        if (raw == null || rawDtype == null) {
            return;
        }
        try {
            if (Base64.getDecoder().decode(raw).length == (long) Shape.size(shape) * bytesOf(rawDtype)) {
                return;
            }
        } catch (IllegalArgumentException notBase64) {
            throw new InvalidJson("the federation's example is not base64");
        }
        throw new InvalidJson("the federation's example is not a sample of its own");
    }

    private static int bytesOf(String type) {
        return switch (type) {
            case "bool", "uint8", "int8" -> 1;
            case "uint16", "int16" -> 2;
            case "int32", "float32" -> 4;
            case "int64", "float64" -> 8;
            default -> throw new InvalidJson(
                "a sample of the federation has the raw type '" + type + "', which is not known");
        };
    }

    /** Return whether a sample has this shape. */
    public boolean hasShape(long[] other) {
        return Arrays.equals(shape, other);
    }
}
