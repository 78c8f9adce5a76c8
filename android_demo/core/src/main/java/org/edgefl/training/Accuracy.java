package org.edgefl.training;

import java.util.List;
import org.edgefl.data.LocalData;
import org.edgefl.engine.Engine;
import org.edgefl.engine.InvalidGraph;

/** The share of right answers on the samples that were held out. */
public final class Accuracy {
    private static final int BATCH = 64;

    private Accuracy() {}

    /**
     * Return it, or null if no samples were held out.
     *
     * @param betweenBatches called before every batch; may end it by an exception
     */
    public static Double of(Engine.Inference inference, LocalData data, Runnable betweenBatches) {
        int count = data.validationSamples();
        if (count == 0) {
            return null;
        }
        int right = 0;
        for (int from = 0; from < count; from += BATCH) {
            betweenBatches.run();
            int to = Math.min(from + BATCH, count);
            List<Integer> answers = inference.predict(data.validationX(from, to));
            if (answers.size() != to - from) {
                throw new InvalidGraph("it answers " + answers.size() + " times to " + (to - from) + " samples");
            }
            for (int i = from; i < to; i++) {
                right += answers.get(i - from) == data.validationLabel(i) ? 1 : 0;
            }
        }
        return (double) right / count;
    }
}
