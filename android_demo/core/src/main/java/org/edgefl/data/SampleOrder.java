package org.edgefl.data;

import java.util.Arrays;
import org.edgefl.noise.Noise;

/** Orders of samples that follow from a seed alone (docs/rules.md, "Samples" and "Batches"). */
public final class SampleOrder {
    private SampleOrder() {}

    /** Return the numbers 0 to count - 1 in the order of their noise, as unsigned numbers, equal ones by number. */
    public static int[] of(long seed, int count) {
        long[] keys = new long[count];
        Integer[] order = new Integer[count];
        for (int i = 0; i < count; i++) {
            keys[i] = Noise.bits(seed, i);
            order[i] = i;
        }
        // A stable sort: equal keys stay in the order of their numbers.
        Arrays.sort(order, (a, b) -> Long.compareUnsigned(keys[a], keys[b]));
        int[] found = new int[count];
        for (int i = 0; i < count; i++) {
            found[i] = order[i];
        }
        return found;
    }

    /** Return which of a device's samples are held out for validation, by number. */
    public static boolean[] heldOut(int count, double share, long seed) {
        int number = (int) Math.min(Math.rint(count * share), count - 1);
        boolean[] held = new boolean[count];
        int[] order = of(Noise.derive(seed, "validation"), count);
        for (int i = 0; i < number; i++) {
            held[order[i]] = true;
        }
        return held;
    }
}
