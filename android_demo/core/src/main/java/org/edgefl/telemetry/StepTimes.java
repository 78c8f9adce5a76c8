package org.edgefl.telemetry;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** Times of training steps, also over restarts of a task. */
public final class StepTimes {
    private static final int RECENT = 31;
    private static final int FEWEST_FOR_DRIFT = 8;

    private double[] seconds = new double[64];
    private int count;

    /** Add the time of a step. */
    public void add(double step) {
        if (count == seconds.length) {
            seconds = Arrays.copyOf(seconds, 2 * count);
        }
        seconds[count++] = step;
    }

    /** All times so far. */
    public double[] toArray() {
        return Arrays.copyOf(seconds, count);
    }

    /** Return the median of the latest steps, or 0. It is asked for after every step, so it must not grow with them. */
    public double recentMedian() {
        return count == 0 ? 0 : share(sorted(Math.max(count > 1 ? 1 : 0, count - RECENT)), 0.5);
    }

    /** Return the median step of the last quarter over that of the first: above 1 is slower. Null for a short task. */
    public Double drift() {
        int quarter = (count - 1) / 4;
        if (count - 1 < FEWEST_FOR_DRIFT) {
            return null;
        }
        double first = middle(Arrays.copyOfRange(seconds, 1, 1 + quarter));
        return first > 0 ? middle(Arrays.copyOfRange(seconds, count - quarter, count)) / first : null;
    }

    private static double middle(double[] times) {
        Arrays.sort(times);
        return (times[(times.length - 1) / 2] + times[times.length / 2]) / 2;
    }

    private double[] sorted(int from) {
        double[] found = Arrays.copyOfRange(seconds, from, count);
        Arrays.sort(found);
        return found;
    }

    private static double share(double[] sorted, double share) {
        return sorted[Math.min((int) (share * sorted.length), sorted.length - 1)];
    }

    /** Return the section {@code latency}: the first step, which warms up the engine, is not among the others. */
    public Map<String, Object> latency(double loadSeconds, double roundSeconds) {
        double[] found = count == 0 ? new double[1] : sorted(count > 1 ? 1 : 0);
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("load_seconds", loadSeconds);
        fields.put("first_step_seconds", count == 0 ? 0.0 : seconds[0]);
        fields.put("min_step_seconds", found[0]);
        fields.put("p50_step_seconds", share(found, 0.5));
        fields.put("p90_step_seconds", share(found, 0.9));
        fields.put("steps_measured", found.length);
        fields.put("round_seconds", Math.max(roundSeconds, share(found, 0.9)));
        fields.put("source", "monotonic clock");
        fields.put("scope", "process");
        fields.put("provenance", "measured");
        return fields;
    }
}
