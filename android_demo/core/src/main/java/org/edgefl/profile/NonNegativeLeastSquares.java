package org.edgefl.profile;

/** Non-negative least squares for a handful of columns: every subset of them is tried. */
final class NonNegativeLeastSquares {
    /** With fewer rows than columns, several subsets are exact: rounding must not choose among them. */
    private static final double EQUAL = 1e-12;

    private NonNegativeLeastSquares() {}

    /** Return the factors, none negative, that bring {@code rows . factors} closest to 1. */
    static double[] fit(double[][] rows) {
        int columns = rows[0].length;
        double[] best = new double[columns];
        double bestError = Double.POSITIVE_INFINITY;
        for (int subset = 1; subset < 1 << columns; subset++) {
            double[] factors = solve(rows, subset, columns);
            double error = factors == null ? Double.POSITIVE_INFINITY : error(rows, factors);
            if (error < bestError - EQUAL) {
                bestError = error;
                best = factors;
            }
        }
        return best;
    }

    private static double error(double[][] rows, double[] factors) {
        double sum = 0;
        for (double[] row : rows) {
            double off = dot(row, factors) - 1;
            sum += off * off;
        }
        return sum;
    }

    static double dot(double[] row, double[] factors) {
        double sum = 0;
        for (int i = 0; i < row.length; i++) {
            sum += row[i] * factors[i];
        }
        return sum;
    }

    /** Ordinary least squares for some of the columns; null if they are dependent or a factor is negative. */
    private static double[] solve(double[][] rows, int subset, int columns) {
        int[] chosen = new int[Integer.bitCount(subset)];
        for (int column = 0, found = 0; column < columns; column++) {
            if ((subset >> column & 1) != 0) {
                chosen[found++] = column;
            }
        }
        int count = chosen.length;
        if (rows.length < count) {
            return null;
        }
        double[][] basis = new double[count][];
        double[][] upper = new double[count][count];
        double[] lengths = new double[count];
        for (int j = 0; j < count; j++) {
            double[] column = new double[rows.length];
            for (int i = 0; i < rows.length; i++) {
                column[i] = rows[i][chosen[j]];
            }
            lengths[j] = Math.sqrt(dot(column, column));
            if (!(lengths[j] > 0)) {
                return null;
            }
            scale(column, 1 / lengths[j]);
            if (!orthogonalise(column, basis, upper, j)) {
                return null;
            }
        }
        return backSubstitute(basis, upper, lengths, chosen, columns);
    }

    /** Gram-Schmidt, twice for accuracy. */
    private static boolean orthogonalise(double[] column, double[][] basis, double[][] upper, int j) {
        for (int pass = 0; pass < 2; pass++) {
            for (int k = 0; k < j; k++) {
                double share = dot(column, basis[k]);
                upper[k][j] += share;
                for (int i = 0; i < column.length; i++) {
                    column[i] -= share * basis[k][i];
                }
            }
        }
        upper[j][j] = Math.sqrt(dot(column, column));
        if (upper[j][j] < 1e-12) {
            return false;
        }
        scale(column, 1 / upper[j][j]);
        basis[j] = column;
        return true;
    }

    private static void scale(double[] column, double factor) {
        for (int i = 0; i < column.length; i++) {
            column[i] *= factor;
        }
    }

    private static double[] backSubstitute(
            double[][] basis, double[][] upper, double[] lengths, int[] chosen, int columns) {
        double[] factors = new double[columns];
        double[] solved = new double[chosen.length];
        for (int j = chosen.length - 1; j >= 0; j--) {
            double value = 0;
            for (double entry : basis[j]) {
                value += entry; // The right side is 1 in every row.
            }
            for (int k = j + 1; k < chosen.length; k++) {
                value -= upper[j][k] * solved[k];
            }
            solved[j] = value / upper[j][j];
            if (solved[j] < 0) {
                return null;
            }
            factors[chosen[j]] = solved[j] / lengths[j];
        }
        return factors;
    }
}
