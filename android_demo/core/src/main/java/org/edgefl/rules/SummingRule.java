package org.edgefl.rules;

import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.edgefl.wire.DType;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Names;
import org.edgefl.wire.Tensor;

/** Base class of rules that send sums over the device's samples (docs/rules.md, {@code feature_sums}). */
abstract class SummingRule extends ForwardRule {
    /** The largest norm of a sample's features, or null. */
    final Double clip;
    private final double noise;
    private final Map<String, long[]> sums = new LinkedHashMap<>();

    SummingRule(Settings settings, Task task) {
        super(task);
        this.clip = settings.positiveOrNull("clip");
        this.noise = settings.number("noise", 0, 0, Double.MAX_VALUE);
        settings.end();
        if (noise > 0 && clip == null) {
            throw new Unsupported("the setting 'noise' of the rule needs a clip");
        }
    }

    /** Name the sums that are sent, with their shapes; refuse a plan that wants others. */
    final void sends(Task task, Map<String, long[]> shapes) {
        sums.putAll(shapes);
        checkSent(task, sums);
    }

    /** Return the norm of the most that a sample adds to all sums together, given that of the clip. */
    abstract double mostAdded(double largest);

    /** Return the tensors of the present head. */
    abstract Map<String, Tensor> headTensors(State state);

    /** Add samples to the sums, one after the other. */
    abstract void add(State state, double[][] rows, double[][] scores, LongBuffer labels);

    @Override
    public final double step(State state, int step, StepResult result, Tensor labels) {
        double[][] rows = rows(result.features(), labels.size());
        double[][] scores = head.scores(rows, headTensors(state));
        add(state, rows, scores, labels.longs());
        return noise > 0 ? 0.0 : loss(scores, labels.longs()); // a loss would tell what the noise hides
    }

    /** Return the features of samples in double precision, clipped, with the 1 of the bias. */
    private double[][] rows(float[][] features, int samples) {
        if (features.length != samples || features[0].length != head.features()) {
            throw new Unsupported("the graph does not return what the head reads of every sample");
        }
        double[][] rows = new double[samples][head.size()];
        for (int i = 0; i < samples; i++) {
            double factor = factor(features[i]);
            for (int j = 0; j < head.features(); j++) {
                rows[i][j] = features[i][j] * factor;
            }
            if (head.bias() != null) {
                rows[i][head.features()] = 1.0;
            }
        }
        return rows;
    }

    /** Return what scales the features of a sample down to the clip; 1 if they are not longer. */
    private double factor(float[] features) {
        double norm = clip == null ? 0.0 : Math.sqrt(Summation.sumOfSquares(FloatBuffer.wrap(features), null));
        return clip == null || !(norm > clip) ? 1.0 : clip / norm;
    }

    /** Return a copy of a sum so far; before the first sample it is 0, or noise. */
    final double[] sum(State state, String name) {
        Tensor kept = state.memory().computeIfAbsent(name, made -> begun(sums.get(name)));
        double[] numbers = new double[kept.size()];
        kept.doubles().get(numbers);
        return numbers;
    }

    /** Keep a sum, where a checkpoint finds it. */
    final void keep(State state, String name, double[] numbers) {
        state.memory().get(name).doubles().put(numbers);
    }

    /** The noise comes from the operating system: a seed that the coordinator knows would hide nothing. */
    private Tensor begun(long[] shape) {
        Tensor made = Tensor.zeros(DType.F64, shape);
        if (noise > 0) {
            SecureRandom random = new SecureRandom();
            double deviation = noise * mostAdded(clip);
            for (int i = 0; i < made.size(); i++) {
                made.doubles().put(i, deviation * random.nextGaussian());
            }
        }
        return made;
    }

    /** Turn the scores of a sample into probabilities, in place, and return the logarithm of the label's. */
    static double softmax(double[] scores, int label) {
        double highest = Double.NEGATIVE_INFINITY;
        for (double score : scores) {
            highest = Math.max(highest, score);
        }
        double shifted = scores[label] - highest;
        double all = 0.0;
        for (int i = 0; i < scores.length; i++) {
            scores[i] = Math.exp(scores[i] - highest);
            all += scores[i];
        }
        for (int i = 0; i < scores.length; i++) {
            scores[i] /= all;
        }
        return shifted - Math.log(all);
    }

    private static double loss(double[][] scores, LongBuffer labels) {
        double sum = 0.0;
        for (int i = 0; i < scores.length; i++) {
            sum -= softmax(scores[i].clone(), (int) labels.get(i));
        }
        return sum / scores.length;
    }

    @Override
    public final RuleResult finish(State state) {
        SortedMap<String, Encoded> sent = new TreeMap<>(Names.UTF8_ORDER);
        for (String name : sums.keySet()) {
            Tensor sum = state.memory().get(name);
            if (!sum.isFinite()) {
                throw new Diverged("'" + name + "' is not finite");
            }
            sent.put(name, new Encoded.Dense(sum));
        }
        return new RuleResult(sent, state.weights(), new HashMap<>());
    }
}
