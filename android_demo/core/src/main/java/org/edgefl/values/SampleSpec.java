package org.edgefl.values;

import java.util.Arrays;
import org.edgefl.data.Normalisation;
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

    /** Read the document. */
    public static SampleSpec of(JsonObject fields) {
        JsonObject rule = fields.objectOrNull("normalisation");
        Normalisation normalisation = rule == null ? null
            : new Normalisation(rule.numbers("mean"), rule.numbers("std"), rule.number("scale", 255));
        long[] shape = fields.wholes("shape");
        Shape.size(shape);
        return new SampleSpec(shape, fields.text("dtype"), fields.textOrNull("raw_dtype"), normalisation,
            fields.count("classes", 1), fields.objectOrNull("example"));
    }

    /** Return whether a sample has this shape. */
    public boolean hasShape(long[] other) {
        return Arrays.equals(shape, other);
    }
}
