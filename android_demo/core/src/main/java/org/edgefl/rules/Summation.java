package org.edgefl.rules;

import java.nio.FloatBuffer;
import org.edgefl.wire.PackedBits;

/** Sums in a fixed order, in double precision: the same bits in every client (docs/rules.md, "Arithmetic"). */
final class Summation {
    private static final int LANES = 64;

    private Summation() {}

    /** Return the sum of squares in 64 lanes; entries that are not held count as 0. All are held if that is null. */
    static double sumOfSquares(FloatBuffer numbers, byte[] held) {
        double[] lanes = new double[LANES];
        int count = numbers.capacity();
        for (int i = 0; i < count; i++) {
            if (held == null || PackedBits.get(held, i)) {
                double number = numbers.get(i);
                lanes[i % LANES] += number * number;
            }
        }
        double sum = 0.0;
        for (double lane : lanes) {
            sum += lane;
        }
        return sum;
    }
}
