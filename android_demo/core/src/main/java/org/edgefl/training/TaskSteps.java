package org.edgefl.training;

import org.edgefl.data.Batch;
import org.edgefl.data.Batches;
import org.edgefl.data.LocalData;
import org.edgefl.engine.Engine;
import org.edgefl.rules.Diverged;
import org.edgefl.rules.LocalRule;
import org.edgefl.rules.State;
import org.edgefl.rules.StepResult;

/** The steps of one task: a batch, the graph, the rule. */
public final class TaskSteps {
    private final LocalData data;
    private final Batches batches;
    private final LocalRule rule;
    private final State state;

    /** The steps of a rule over some batches; the state changes in place. */
    public TaskSteps(LocalData data, Batches batches, LocalRule rule, State state) {
        this.data = data;
        this.batches = batches;
        this.rule = rule;
        this.state = state;
    }

    /** Take a step, counted from 0 over all epochs, and return the mean loss of its batch. */
    public float take(Engine.TrainStep graph, int step) {
        Batch batch = batches.at(step);
        rule.prepare(state, step);
        StepResult result = graph.run(data.x(batch.samples()), data.y(batch.samples()), batch.seed());
        if (Float.isNaN(result.loss()) || Float.isInfinite(result.loss())) {
            throw new Diverged("the loss of step " + (step + 1) + " is " + result.loss());
        }
        rule.step(state, step, result);
        return result.loss();
    }
}
