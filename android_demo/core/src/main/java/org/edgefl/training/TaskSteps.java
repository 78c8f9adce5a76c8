package org.edgefl.training;

import org.edgefl.data.Batch;
import org.edgefl.data.Batches;
import org.edgefl.data.LocalData;
import org.edgefl.engine.Engine;
import org.edgefl.rules.Diverged;
import org.edgefl.rules.LocalRule;
import org.edgefl.rules.State;
import org.edgefl.rules.StepResult;
import org.edgefl.wire.Tensor;

/** The steps of one task: a batch, the graph, the rule. */
public final class TaskSteps {
    private final LocalData data;
    private final Batches batches;
    private final LocalRule rule;
    private final State state;
    private Tensor x;
    private Tensor y;

    /** The steps of a rule over some batches; the state changes in place. */
    public TaskSteps(LocalData data, Batches batches, LocalRule rule, State state) {
        this.data = data;
        this.batches = batches;
        this.rule = rule;
        this.state = state;
    }

    /** Take a step, counted from 0 over all epochs, and return the mean loss of its batch. */
    public double take(Engine.TrainStep graph, int step) {
        Batch batch = batches.at(step);
        rule.prepare(state, step);
        fill(batch);
        StepResult result = graph.run(x, y, batch.seed());
        double loss = rule.step(state, step, result, y);
        if (Double.isNaN(loss) || Double.isInfinite(loss)) {
            throw new Diverged("the loss of step " + (step + 1) + " is " + loss);
        }
        return loss;
    }

    /** Write the batch over the one before. Only the last batch of an epoch may have another size. */
    private void fill(Batch batch) {
        if (x == null || y.size() != batch.samples().length) {
            x = data.x(batch.samples());
            y = data.y(batch.samples());
        } else {
            data.put(batch.samples(), x, y);
        }
    }
}
