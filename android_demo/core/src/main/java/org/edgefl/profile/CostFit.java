package org.edgefl.profile;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Fits the cost of a training step to measurements (docs/profile.md, "How cost is fitted"). */
public final class CostFit {
    private static final double ALIKE = 1.2;
    private static final double MEBIBYTE = 1 << 20;

    private CostFit() {}

    /** Return the factors of time: overhead, forward, backward, activations, trained parameters. */
    static double[] time(List<Measured> cases) {
        boolean alike = areAlike(cases);
        double[][] rows = new double[cases.size()][];
        for (int i = 0; i < rows.length; i++) {
            Measured one = cases.get(i);
            rows[i] = alike
                ? new double[] {1, one.forward() + one.backward(), one.activations(), one.trained()}
                : new double[] {1, one.forward(), one.backward(), one.activations(), one.trained()};
            divide(rows[i], one.value());
        }
        double[] found = NonNegativeLeastSquares.fit(rows);
        return alike ? new double[] {found[0], found[1], found[1], found[2], found[3]} : found;
    }

    private static boolean areAlike(List<Measured> cases) {
        double least = Double.POSITIVE_INFINITY;
        double most = 0;
        for (Measured one : cases) {
            double ratio = one.backward() / Math.max(1, one.forward());
            least = Math.min(least, ratio);
            most = Math.max(most, ratio);
        }
        return most < ALIKE * least;
    }

    /** Return the factors of memory: base, activations, parameter bytes, trained parameters. */
    static double[] memory(List<Measured> cases) {
        double[][] rows = new double[cases.size()][];
        for (int i = 0; i < rows.length; i++) {
            Measured one = cases.get(i);
            rows[i] = new double[] {1, one.activations(), one.parameterBytes(), one.trained()};
            divide(rows[i], one.value());
        }
        return NonNegativeLeastSquares.fit(rows);
    }

    private static void divide(double[] row, double value) {
        for (int i = 0; i < row.length; i++) {
            row[i] /= value;
        }
    }

    private static double seconds(double[] factors, Measured one) {
        return NonNegativeLeastSquares.dot(factors,
            new double[] {1, one.forward(), one.backward(), one.activations(), one.trained()});
    }

    private static double bytes(double[] factors, Measured one) {
        return NonNegativeLeastSquares.dot(factors,
            new double[] {1, one.activations(), one.parameterBytes(), one.trained()});
    }

    /** The median error for groups that a fit has not seen. */
    private static double relativeError(List<Measured> cases, boolean time) {
        Function<List<Measured>, double[]> fit = time ? CostFit::time : CostFit::memory;
        LinkedHashSet<String> groups = new LinkedHashSet<>();
        cases.forEach(one -> groups.add(one.group()));
        List<Double> errors = new ArrayList<>();
        for (String group : groups) {
            List<Measured> others = new ArrayList<>(cases);
            others.removeIf(one -> one.group().equals(group));
            double[] factors = fit.apply(others);
            for (Measured one : cases) {
                if (one.group().equals(group)) {
                    double predicted = time ? seconds(factors, one) : bytes(factors, one);
                    errors.add(Math.abs(predicted / one.value() - 1));
                }
            }
        }
        return median(errors.stream().mapToDouble(Double::doubleValue).toArray());
    }

    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    /**
     * Return the section {@code cost} of a profile.
     *
     * @param peaks measured peaks, or null: then a safe guess above {@code baseBytes} is made
     */
    public static Map<String, Object> cost(List<Measured> times, List<Measured> peaks, long baseBytes, String model) {
        double[] time = time(times);
        double[] memory = peaks == null ? new double[] {baseBytes + 32 * MEBIBYTE, 2, 2, 20} : memory(peaks);
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("overhead_seconds", time[0]);
        fields.put("forward_seconds_per_multiply_add", time[1]);
        fields.put("backward_seconds_per_multiply_add", time[2]);
        fields.put("seconds_per_activation_byte", time[3]);
        fields.put("seconds_per_trained_parameter", time[4]);
        fields.put("memory_base_bytes", Math.round(memory[0]));
        fields.put("memory_bytes_per_activation_byte", memory[1]);
        fields.put("memory_bytes_per_parameter_byte", memory[2]);
        fields.put("memory_bytes_per_trained_parameter", memory[3]);
        fields.put("relative_error", Math.max(relativeError(times, true), 1e-9));
        fields.put("memory_relative_error", peaks == null ? null : relativeError(peaks, false));
        fields.put("measurements", times.size());
        fields.put("measured_on", model);
        return fields;
    }
}
