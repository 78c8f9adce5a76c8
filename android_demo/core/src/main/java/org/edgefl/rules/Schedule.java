package org.edgefl.rules;

import java.util.ArrayList;
import java.util.List;

/**
 * The learning rate of every step, in double precision (docs/rules.md, "Learning rates").
 *
 * @param learningRate the first rate
 * @param kind {@code constant}, {@code step_decay}, {@code exponential} or {@code cosine}
 * @param byStep whether progress counts steps, and not only rounds
 * @param decayAt when the rate decays, as shares of all rounds
 */
public record Schedule(
        double learningRate, String kind, boolean byStep, double decayFactor, List<Double> decayAt, double finalRate) {

    /** Read the settings of a rule that has a learning rate. */
    public static Schedule of(Settings settings) {
        Double rate = settings.positiveOrNull("learning_rate");
        return new Schedule(rate == null ? 0.1 : rate,
            settings.choice("schedule", "constant", "step_decay", "exponential", "cosine"),
            settings.choice("schedule_by", "round", "step").equals("step"),
            settings.number("decay_factor", 0.1, 0, 1), decayAt(settings.text("decay_at", "0.5, 0.75")),
            settings.number("final_rate", 0, 0, Double.MAX_VALUE));
    }

    private static List<Double> decayAt(String text) {
        List<Double> found = new ArrayList<>();
        try {
            for (String number : text.split(",")) {
                if (!number.trim().isEmpty()) {
                    found.add(Double.parseDouble(number.trim()));
                }
            }
        } catch (NumberFormatException error) {
            throw new Unsupported("'decay_at' must be numbers from 0 to 1, separated by commas");
        }
        return found;
    }

    /** Return the rate of a step of a round; {@code steps} is how many this round has. */
    public double rate(int round, int rounds, int step, int steps) {
        double done = byStep ? (double) ((long) round * steps + step) : round;
        double total = byStep ? (double) ((long) rounds * steps) : rounds;
        double progress = Math.min(done / Math.max(total, 1), 1);
        return switch (kind) {
            case "step_decay" -> learningRate * decayed(progress);
            case "exponential" -> learningRate * Math.pow(decayFactor, byStep ? done / Math.max(steps, 1) : round);
            case "cosine" -> finalRate + (learningRate - finalRate) * (0.5 * (1 + Math.cos(Math.PI * progress)));
            default -> learningRate;
        };
    }

    private double decayed(double progress) {
        double factor = 1.0;
        for (double at : decayAt) {
            if (at <= progress) {
                factor *= decayFactor;
            }
        }
        return factor;
    }
}
