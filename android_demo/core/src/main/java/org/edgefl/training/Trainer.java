package org.edgefl.training;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SortedMap;
import org.edgefl.data.Batches;
import org.edgefl.data.LocalData;
import org.edgefl.engine.Cancelled;
import org.edgefl.engine.Engine;
import org.edgefl.masks.Mask;
import org.edgefl.rules.ForwardRule;
import org.edgefl.rules.LocalRule;
import org.edgefl.rules.RuleResult;
import org.edgefl.rules.Settings;
import org.edgefl.rules.State;
import org.edgefl.rules.Task;
import org.edgefl.rules.Unsupported;
import org.edgefl.telemetry.StepTimes;
import org.edgefl.training.Checkpoint.Position;
import org.edgefl.values.ClientPlan;
import org.edgefl.values.LocalWork;
import org.edgefl.values.Submodel;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.Digests;
import org.edgefl.wire.InvalidBody;
import org.edgefl.wire.PackedBits;
import org.edgefl.wire.Shape;
import org.edgefl.wire.Tensor;

/** Trains one task: downloads in, a result out; or a checkpoint, if it has to stop. */
public final class Trainer {
    private final Engine engine;
    private final LocalData data;
    private final Downloads downloads;
    private final Path checkpointFile;
    private final double checkpointSeconds;

    /** A trainer that keeps its checkpoints in one file. */
    public Trainer(
            Engine engine, LocalData data, Downloads downloads, Path checkpointFile, double checkpointSeconds) {
        this.engine = engine;
        this.data = data;
        this.downloads = downloads;
        this.checkpointFile = checkpointFile;
        this.checkpointSeconds = checkpointSeconds;
    }

    /** Train a task from its checkpoint, if there is one, to its end. */
    public Trained train(ClientPlan plan, Interrupts interrupts) throws IOException {
        return train(plan, interrupts, (step, steps, secondsLeft) -> { });
    }

    /** Train a task as above, and tell after every step. */
    public Trained train(ClientPlan plan, Interrupts interrupts, StepListener listener) throws IOException {
        return new Run(plan, interrupts, listener).train();
    }

    /** Read the mask's held bits and the weights, and check both against the submodel. */
    private Map<String, Tensor> weights(ClientPlan plan, Submodel submodel) throws IOException {
        SortedMap<String, Tensor> found = BodyReader.read(downloads.file(plan.weights())).dense();
        Map<String, Tensor> weights = new LinkedHashMap<>();
        for (SubmodelTensor tensor : submodel.tensors()) {
            Tensor value = found.remove(tensor.name());
            if (value == null || value.dtype() != tensor.dtype()
                || !Arrays.equals(value.shape(), tensor.shape())) {
                throw new InvalidBody("the weights of '" + tensor.name() + "' are not those of the plan");
            }
            weights.put(tensor.name(), value);
        }
        if (!found.isEmpty()) {
            throw new InvalidBody("the weights have '" + found.firstKey() + "', which the plan does not name");
        }
        return weights;
    }

    private Map<String, Tensor> extras(ClientPlan plan) throws IOException {
        if (plan.extras() == null) {
            return Map.of();
        }
        if (!LocalRule.readsExtras(plan.rule())) {
            throw new Unsupported("the plan has extras, which the rule '" + plan.rule() + "' does not use here");
        }
        return BodyReader.read(downloads.file(plan.extras())).dense();
    }

    private Map<String, byte[]> held(ClientPlan plan, Submodel submodel) throws IOException {
        if (plan.maskBody() == null) {
            return Map.of();
        }
        Mask mask = Mask.of(BodyReader.read(downloads.file(plan.maskBody())));
        if (!mask.digest(plan.model()).equals(plan.mask())) {
            throw new InvalidBody("the mask is not the one that the plan names");
        }
        Map<String, byte[]> held = new HashMap<>();
        for (SubmodelTensor tensor : submodel.tensors()) {
            byte[] bits = mask.held().get(tensor.name());
            if (bits != null) {
                if (bits.length != PackedBits.bytes(Shape.size(tensor.shape()))) {
                    throw new InvalidBody("the mask of '" + tensor.name() + "' does not fit the plan");
                }
                held.put(tensor.name(), bits);
            }
        }
        return held;
    }

    /** One training: everything that belongs to one plan. */
    private final class Run {
        private final ClientPlan plan;
        private final Interrupts interrupts;
        private final StepListener listener;
        private final Submodel submodel;
        private final Batches batches;
        private final LocalRule rule;
        private final State state;
        private final TaskSteps taskSteps;
        private final Checkpoint checkpoint;
        private final StepTimes times = new StepTimes();
        private final long began = System.nanoTime();
        private double earlierSeconds;
        private double loadSeconds;
        private int step;
        private double lossSum;
        private int lossCount;
        private Double accuracyBefore;

        Run(ClientPlan plan, Interrupts interrupts, StepListener listener) throws IOException {
            this.plan = plan;
            this.interrupts = interrupts;
            this.listener = listener;
            if (plan.tensors() == null || plan.graph() == null || plan.weights() == null) {
                throw new Unsupported("the plan lacks tensors, graph or weights");
            }
            this.submodel = Submodel.parse(Files.readAllBytes(downloads.file(plan.tensors())));
            this.batches = batches();
            if (batches.areTooMany()) {
                throw new Unsupported("the plan has more than 1,000,000 steps");
            }
            Task task = new Task(submodel, held(plan, submodel), plan.seed(), plan.round(), plan.rounds(),
                batches.steps(), extras(plan));
            this.rule = LocalRule.of(plan.rule(), new Settings(plan.settings()), task);
            this.state = State.of(weights(plan, submodel));
            this.taskSteps = new TaskSteps(data, batches, rule, state);
            this.checkpoint = new Checkpoint(checkpointFile, plan.taskId() + " " + origin());
        }

        private Batches batches() {
            LocalWork work = plan.work();
            return LocalRule.onlyForward(plan.rule())
                ? Batches.every(data.trainingSamples(), work.batchSize(), work.mostSteps(), plan.seed())
                : new Batches(data.trainingSamples(), work.epochs(), work.batchSize(), work.mostSteps(), plan.seed());
        }

        /** What the bits of the training follow from: its owner may have changed the samples since the last start. */
        private String origin() {
            String text = plan.origin() + " " + data.digest();
            return Digests.of(text.getBytes(StandardCharsets.UTF_8));
        }

        Trained train() throws IOException {
            Map<String, Tensor> forward = rule.forward(state);
            begin();
            try {
                long loading = System.nanoTime();
                try (Engine.TrainStep graph = load(forward)) {
                    loadSeconds = seconds(loading);
                    interrupts.onStop(graph::cancel);
                    steps(graph);
                }
                return finish();
            } catch (Interrupts.Stopped | Cancelled stop) {
                save();
                throw new Interrupts.Stopped();
            } finally {
                interrupts.onStop(null);
            }
        }

        private Engine.TrainStep load(Map<String, Tensor> forward) {
            Path graph = downloads.file(plan.graph());
            if (!(rule instanceof ForwardRule forwardRule)) {
                return engine.train(graph, submodel, forward, data.labelMask());
            }
            return forwardRule.readsFeatures() ? FeatureStep.of(engine.features(graph, forward))
                : FeatureStep.ofNothing();
        }

        private Trained finish() {
            RuleResult result = rule.finish(state);
            Map<String, Double> metrics = new HashMap<>(result.metrics());
            if (accuracyBefore != null) {
                metrics.put("accuracy_before", accuracyBefore);
            }
            Double accuracy = LocalRule.changesModel(plan.rule()) ? accuracy(result.own()) : null;
            return new Trained(result, data.trainingSamples(), step, lossSum / Math.max(lossCount, 1), accuracy,
                metrics, times, loadSeconds, earlierSeconds + seconds(began));
        }

        private Double accuracy(Map<String, Tensor> weights) {
            if (plan.inference() == null || data.validationSamples() == 0) {
                return null;
            }
            try (Engine.Inference inference = engine.infer(downloads.file(plan.inference()), weights)) {
                interrupts.onStop(inference::cancel);
                return Accuracy.of(inference, data, () -> interrupts.check(0));
            } catch (Cancelled stop) {
                throw new Interrupts.Stopped();
            }
        }

        /** Go on from the checkpoint. What comes before the first step is not worth one. */
        private void begin() {
            Position position = checkpoint.restore(state);
            if (position != null) {
                step = position.steps();
                lossSum = position.lossSum();
                lossCount = position.lossCount();
                accuracyBefore = position.accuracyBefore();
                earlierSeconds = position.seconds();
                for (double time : position.times()) {
                    times.add(time);
                }
            } else if (rule.evaluatesBefore()) {
                accuracyBefore = accuracy(state.weights());
            }
        }

        private void steps(Engine.TrainStep graph) throws IOException {
            long saved = System.nanoTime();
            while (step < batches.steps()) {
                interrupts.check(secondsLeft());
                long start = System.nanoTime();
                one(graph);
                times.add(seconds(start));
                listener.step(step, batches.steps(), secondsLeft());
                if (seconds(saved) >= checkpointSeconds && step < batches.steps()) {
                    save();
                    saved = System.nanoTime();
                }
            }
        }

        private double secondsLeft() {
            return (batches.steps() - step) * times.recentMedian();
        }

        private void one(Engine.TrainStep graph) {
            if (step % batches.perEpoch() == 0) {
                lossSum = 0;
                lossCount = 0;
            }
            lossSum += taskSteps.take(graph, step);
            lossCount++;
            step++;
        }

        private void save() throws IOException {
            checkpoint.save(submodel, state, new Position(
                step, lossSum, lossCount, times.toArray(), accuracyBefore, earlierSeconds + seconds(began)));
        }

        private double seconds(long since) {
            return (System.nanoTime() - since) / 1e9;
        }
    }
}
