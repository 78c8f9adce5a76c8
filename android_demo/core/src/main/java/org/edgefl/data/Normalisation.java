package org.edgefl.data;

/**
 * How raw values become {@code x}: x = f32(r) * f32(1 / (scale * std)) - f32(mean / std), by channel.
 *
 * @param mean one per channel, or one for all
 * @param std as many
 * @param scale what raw values are divided by first
 */
public record Normalisation(double[] mean, double[] std, double scale) {
    /** Check that there are as many means as deviations, and none of those is 0. */
    public Normalisation {
        boolean valid = mean.length == std.length && mean.length > 0 && scale > 0;
        for (double deviation : std) {
            valid &= deviation > 0;
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
