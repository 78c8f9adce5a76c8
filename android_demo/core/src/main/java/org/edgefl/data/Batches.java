package org.edgefl.data;

import java.util.Arrays;
import org.edgefl.noise.Noise;

/**
 * The batches of a task, each found from its number alone, so that a resumed task goes on with the same ones.
 *
 * <p>docs/rules.md, "Batches".
 */
public final class Batches {
    private static final long MOST_STEPS = 1_000_000;

    private final int samples;
    private final int batchSize;
    private final long seed;
    private final int perEpoch;
    private final long steps;
    private int orderedEpoch = -1;
    private int[] order;

    /** Batches of {@code samples} training samples; {@code mostSteps} is null if there is no limit. */
    public Batches(int samples, int epochs, int batchSize, Integer mostSteps, long seed) {
        this(samples, batchSize, seed, samples > batchSize && samples % batchSize == 1, epochs, mostSteps);
    }

    private Batches(int samples, int batchSize, long seed, boolean dropsLast, int epochs, Integer mostSteps) {
        this.samples = samples;
        this.batchSize = batchSize;
        this.seed = seed;
        this.perEpoch = samples / batchSize + (samples % batchSize == 0 || dropsLast ? 0 : 1);
        long all = (long) epochs * perEpoch;
        this.steps = mostSteps == null ? all : Math.min(all, mostSteps);
    }

    /** Return batches of every training sample once, in the order of the first epoch; the last may be of one sample. */
    public static Batches every(int samples, int batchSize, Integer mostSteps, long seed) {
        return new Batches(samples, batchSize, seed, false, 1, mostSteps);
    }

    /** Return whether there are more steps than any client takes on. */
    public boolean areTooMany() {
        return steps > MOST_STEPS;
    }

    /** The number of steps of the whole task. */
    public int steps() {
        return (int) steps;
    }

    /** The number of steps in a pass over the data. */
    public int perEpoch() {
        return perEpoch;
    }

    /** Return the batch of a step, counted from 0 over all epochs. */
    public Batch at(int step) {
        int epoch = step / perEpoch;
        int within = step % perEpoch;
        if (epoch != orderedEpoch) {
            order = SampleOrder.of(Noise.derive(seed, "order", epoch), samples);
            orderedEpoch = epoch;
        }
        int[] chosen = Arrays.copyOfRange(order, within * batchSize, Math.min((within + 1) * batchSize, samples));
        return new Batch(epoch, chosen, Noise.derive(seed, "network", epoch, within));
    }

    /** Return the extra batch, for rules that need one more gradient at the end. */
    public Batch extra() {
        int[] all = SampleOrder.of(Noise.derive(seed, "extra"), samples);
        int[] chosen = Arrays.copyOf(all, Math.min(batchSize, samples));
        return new Batch(-1, chosen, Noise.derive(seed, "network", "extra"));
    }
}
