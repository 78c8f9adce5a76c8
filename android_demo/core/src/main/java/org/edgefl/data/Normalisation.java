package org.edgefl.data;

/**
 * How raw values become {@code x}: x = f32(r) * f32(1 / (scale * std)) - f32(mean / std), by channel.
 *
 * @param mean one per channel, or one for all
 * @param std as many
 * @param scale what raw values are divided by first
 */
public record Normalisation(double[] mean, double[] std, double scale) {
    private static final int MOST_CHANNELS = 256;

    /** Check that there are as many means as deviations, none of those is 0, and float32 can hold the factors. */
    public Normalisation {
        boolean valid = mean.length == std.length && mean.length > 0 && mean.length <= MOST_CHANNELS && scale > 0;
        for (int c = 0; valid && c < std.length; c++) {
            double factor = 1 / (scale * std[c]);
            valid = std[c] > 0 && factor <= Float.MAX_VALUE && Math.abs(mean[c] / std[c]) <= Float.MAX_VALUE;
        }
        if (!valid) {
            throw new InvalidData("the federation's normalisation is not valid", "Ask the operator to correct it.");
        }
    }

    /** Normalise one sample in place; {@code channels} is the size of its first axis. */
    public void apply(float[] values, int from, int length, int channels) {
        int perChannel = mean.length == 1 ? length : length / channels;
        for (int c = 0; c < mean.length; c++) {
            float factor = (float) (1 / (scale * std[c]));
            float shift = (float) (mean[c] / std[c]);
            for (int i = from + c * perChannel; i < from + (c + 1) * perChannel; i++) {
                values[i] = values[i] * factor - shift;
            }
        }
    }
}
