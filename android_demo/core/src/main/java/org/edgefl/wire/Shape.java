package org.edgefl.wire;

import java.util.ArrayList;
import java.util.List;

/** Sizes of a tensor's axes: checks, counts and texts. */
public final class Shape {
    /** Most axes of a tensor. */
    public static final int MOST_AXES = 16;
    /** Most entries of a tensor. */
    public static final long MOST_ENTRIES = Integer.MAX_VALUE;

    private Shape() {}

    /** Check that sizes are within the limits of the wire format, and return the number of entries. */
    public static int size(long[] shape) {
        if (shape.length > MOST_AXES) {
            throw new InvalidBody("a shape has " + shape.length + " axes, and at most " + MOST_AXES + " are allowed");
        }
        boolean empty = false;
        for (long size : shape) {
            if (size < 0 || size > MOST_ENTRIES) {
                throw new InvalidBody("an axis has the size " + size);
            }
            empty |= size == 0;
        }
        long product = 1;
        for (long size : shape) {
            product *= empty && size == 0 ? 1 : size;
            if (product > MOST_ENTRIES) {
                throw new InvalidBody("the shape " + text(shape, " x ") + " has too many entries");
            }
        }
        return empty ? 0 : (int) product;
    }

    /** Return the sizes joined by a separator. */
    public static String text(long[] shape, String separator) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < shape.length; i++) {
            out.append(i == 0 ? "" : separator).append(shape[i]);
        }
        return out.toString();
    }

    /** Return the sizes as a list, for JSON. */
    public static List<Long> list(long[] shape) {
        List<Long> found = new ArrayList<>();
        for (long size : shape) {
            found.add(size);
        }
        return found;
    }
}
