package org.edgefl.agent;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.edgefl.data.InvalidData;
import org.edgefl.data.LocalData;
import org.edgefl.engine.Engine;
import org.edgefl.files.AtomicFile;
import org.edgefl.json.JsonText;
import org.edgefl.rules.Diverged;
import org.edgefl.rules.LocalRule;
import org.edgefl.rules.Unsupported;
import org.edgefl.telemetry.HeapMeters;
import org.edgefl.telemetry.Meters;
import org.edgefl.training.Interrupts;
import org.edgefl.training.StepListener;
import org.edgefl.training.Trained;
import org.edgefl.training.Trainer;
import org.edgefl.values.ClientPlan;
import org.edgefl.values.LocalResult;
import org.edgefl.values.Refusal;
import org.edgefl.values.Submodel;
import org.edgefl.values.TaskRefused;
import org.edgefl.wire.Body;
import org.edgefl.wire.BodyWriter;
import org.edgefl.wire.Names;

/** Turns a task whose artifacts are here into a result on the disk, or into a refusal. */
final class TaskRunner {
    private final AgentHome home;
    private final Engine engine;
    private final Meters meters;
    private final TrafficMeter traffic;
    private final ArtifactCache cache;
    private final OwnerLimits limits;
    private final double checkpointSeconds;

    TaskRunner(Parts parts) {
        this.home = parts.home;
        this.engine = parts.settings.engine();
        this.meters = parts.settings.meters();
        this.traffic = parts.traffic;
        this.cache = parts.cache;
        this.limits = parts.settings.limits();
        this.checkpointSeconds = parts.settings.checkpointSeconds();
    }

    /** Train, and write the result. Whatever goes wrong with the task itself becomes a refusal. */
    Trained run(ClientPlan plan, OwnSamples samples, Interrupts interrupts, StepListener listener) {
        try {
            LocalData data = samples.anew();
            if (data == null) {
                throw new TaskRefused(Refusal.Reason.DATA, "there are no samples on this device");
            }
            if (limits.memoryBytes() > 0 && plan.predictedPeakBytes() != null
                && plan.predictedPeakBytes() > limits.memoryBytes()) {
                throw new TaskRefused(Refusal.Reason.MEMORY, "the task would take more memory than it may have here");
            }
            TaskStarts.note(home);
            begin();
            Trainer trainer = new Trainer(
                engine, data, cache, home.taskFile("checkpoint.safetensors"), checkpointSeconds);
            Trained trained = trainer.train(plan, interrupts, listener);
            keep(plan, trained);
            return trained;
        } catch (TaskRefused | Interrupts.Stopped known) {
            throw known;
        } catch (InvalidData error) {
            throw new TaskRefused(Refusal.Reason.DATA, error.getMessage());
        } catch (Diverged error) {
            throw new TaskRefused(Refusal.Reason.DIVERGED, error.getMessage());
        } catch (Unsupported error) {
            throw new TaskRefused(Refusal.Reason.UNSUPPORTED, error.getMessage());
        } catch (OutOfMemoryError error) {
            throw new TaskRefused(Refusal.Reason.MEMORY, "there is not enough memory: " + error.getMessage());
        } catch (IOException error) {
            throw new TaskRefused(Refusal.Reason.STORAGE, "the disk failed: " + error.getMessage());
        } catch (RuntimeException error) {
            throw new TaskRefused(Refusal.Reason.BROKEN, String.valueOf(error.getMessage()));
        }
    }

    private void begin() {
        try {
            meters.begin();
        } catch (RuntimeException failed) {
            // Its sections will be missing.
            return;
        }
    }

    private void keep(ClientPlan plan, Trained trained) throws IOException {
        if (Double.isNaN(trained.loss()) || Double.isInfinite(trained.loss())) {
            throw new Diverged("the mean loss is not finite");
        }
        keepModels(plan, trained);
        LocalResult report = new LocalResult(plan, trained.samples(), trained.steps(), trained.loss(),
            trained.accuracy(), telemetry(trained), metrics(trained));
        SortedMap<String, String> about = new TreeMap<>(Names.UTF8_ORDER);
        about.put("result", report.toJson());
        about.put("model", plan.model());
        about.put("mask", plan.mask());
        Body update = new Body("update", about, plan.seed(),
            plan.isPersonal() ? new TreeMap<>(Names.UTF8_ORDER) : trained.result().sent());
        // The report first: once the result is there, it is only sent, and the report goes into the history.
        AtomicFile.write(home.taskFile("report.json"), report.toJson().getBytes(StandardCharsets.UTF_8));
        AtomicFile.write(home.taskFile("result.safetensors"), out -> BodyWriter.write(update, out));
    }

    /** The device's own model stays here, for predictions, and beside it the one that it began with. */
    private void keepModels(ClientPlan plan, Trained trained) throws IOException {
        if (plan.inference() == null || !LocalRule.changesModel(plan.rule())) {
            return;
        }
        Submodel submodel = Submodel.parse(Files.readAllBytes(cache.file(plan.tensors())));
        home.models().replace(plan.taskId(), plan.round(), cache.file(plan.inference()), cache.file(plan.weights()),
            trained.result().own(), submodel.parameters());
    }

    private static Map<String, Double> metrics(Trained trained) {
        Map<String, Double> metrics = new TreeMap<>(trained.metrics());
        Double drift = trained.times().drift();
        if (drift != null) {
            metrics.put("step_drift", drift);
        }
        return metrics;
    }

    private Map<String, Object> telemetry(Trained trained) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("latency", trained.times().latency(trained.loadSeconds(), trained.seconds()));
        Map<String, Object> memory = section(meters::memory);
        fields.put("memory", memory == null ? new HeapMeters().memory() : memory);
        fields.put("transfer", traffic.section());
        fields.put("threads", engine.threads());
        fields.put("energy", section(meters::energy));
        fields.put("thermal", section(meters::thermal));
        return fields;
    }

    /** Read an instrument. One that fails, or shows what is not a number, must not cost the training. */
    private static Map<String, Object> section(Supplier<Map<String, Object>> instrument) {
        try {
            Map<String, Object> found = instrument.get();
            JsonText.write(found);
            return found;
        } catch (RuntimeException failed) {
            return null;
        }
    }
}
