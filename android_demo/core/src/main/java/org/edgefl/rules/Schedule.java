package org.edgefl.rules;

import java.util.ArrayList;
import java.util.List;
import org.edgefl.json.JsonObject;

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
    public static Schedule of(JsonObject settings) {
        String by = settings.has("schedule_by") ? settings.text("schedule_by") : "round";
        return new Schedule(settings.number("learning_rate"),
            settings.has("schedule") ? settings.text("schedule") : "constant", by.equals("step"),
            settings.number("decay_factor", 0.1),
            parseDecayAt(settings.has("decay_at") ? settings.text("decay_at") : "0.5,0.75"),
            settings.number("final_rate", 0));
    }

    /** Read {@code decay_at}: numbers from 0 to 1, separated by commas. */
    public static List<Double> parseDecayAt(String text) {
        List<Double> found = new ArrayList<>();
        for (String number : text.split(",")) {
            if (!number.trim().isEmpty()) {
                found.add(Double.parseDouble(number.trim()));
            }
        }
        return found;
    }

    /** Return the rate of a step of a round; {@code steps} is how many this round has. */
    public double rate(int round, int rounds, int step, int steps) {
        double done = byStep ? (double) ((long) round * steps + step) : round;
        double total = byStep ? (double) ((long) rounds * steps) : rounds;
        double progress = Math.min(done / Math.max(total, 1), 1);
        return switch (kind) {
            case "constant" -> learningRate;
            case "step_decay" -> learningRate * decayed(progress);
            case "exponential" -> learningRate * Math.pow(decayFactor, byStep ? done / Math.max(steps, 1) : round);
            case "cosine" ->
                finalRate + (learningRate - finalRate) * (0.5 * (1 + Math.cos(Math.PI * progress)));
            default -> throw new Unsupported("the learning-rate schedule '" + kind + "' is not known");
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
