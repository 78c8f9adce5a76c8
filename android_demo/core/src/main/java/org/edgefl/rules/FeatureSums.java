package org.edgefl.rules;

import java.nio.LongBuffer;
import java.util.Map;
import org.edgefl.wire.Tensor;

/**
 * One pass over the samples, forward only, and sums of what the head reads, for a head that is solved exactly
 * (docs/rules.md).
 *
 * <p>A product of two float32 is exact in double precision, and samples are added one after the other, so every client
 * has the same bits for the same features. Of the symmetric A the upper triangle is kept, row by row, as it is sent.
 */
public final class FeatureSums extends SummingRule {
    /** The name of the rule. */
    public static final String NAME = "feature_sums";

    private static final String GRAM = "sums/gram";
    private static final String PRODUCTS = "sums/products";
    private static final String SQUARES = "sums/squares";

    /** The rule with its settings. */
    public FeatureSums(Settings settings, Task task) {
        super(settings, task);
        long size = head.size();
        sends(task, Map.of(GRAM, new long[] {size * (size + 1) / 2}, PRODUCTS, new long[] {size, head.outputs()},
            SQUARES, new long[] {head.outputs()}));
    }

    @Override
    double mostAdded(double largest) {
        double square = largest * largest + 1.0; // with the 1 of a bias
        return Math.sqrt(square * square + square + 1.0);
    }

    @Override
    Map<String, Tensor> headTensors(State state) {
        return state.weights();
    }

    @Override
    void add(State state, double[][] rows, double[][] scores, LongBuffer labels) {
        double[] gram = sum(state, GRAM);
        double[] products = sum(state, PRODUCTS);
        double[] squares = sum(state, SQUARES);
        for (int i = 0; i < rows.length; i++) {
            double[] row = rows[i];
            int label = (int) labels.get(i);
            int at = 0;
            for (int j = 0; j < row.length; j++) {
                for (int k = j; k < row.length; k++) {
                    gram[at++] += row[j] * row[k];
                }
                products[j * squares.length + label] += row[j]; // of the other classes it is 0
            }
            squares[label] += 1.0;
        }
        keep(state, GRAM, gram);
        keep(state, PRODUCTS, products);
        keep(state, SQUARES, squares);
    }
}
