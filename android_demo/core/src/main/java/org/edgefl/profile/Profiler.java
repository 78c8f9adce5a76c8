package org.edgefl.profile;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.EdgeFLError;
import org.edgefl.engine.Engine;
import org.edgefl.json.JsonObject;
import org.edgefl.training.Downloads;
import org.edgefl.values.SampleSpec;
import org.edgefl.values.Submodel;
import org.edgefl.wire.BodyReader;

/** Measures this device with steps of the federation's own model (docs/profile.md). */
public final class Profiler {
    private static final int MOST_VISITS = 20;
    private static final int LEAST_VISITS = 3;
    private static final double VISIT_SECONDS = 0.02;

    private final Engine engine;
    private final DeviceFacts facts;
    private final double seconds;

    /** A profiler that takes about so many seconds. */
    public Profiler(Engine engine, DeviceFacts facts, double seconds) {
        this.engine = engine;
        this.facts = facts;
        this.seconds = seconds;
    }

    /** One case of the measurement. */
    private record Case(MeasuredCase graph, int batchSize, JsonObject work, String group) {}

    /**
     * Measure and return the profile, with its schema.
     *
     * @param measurement what {@code GET /v1/measurement} answered
     * @param files the downloads that it names
     * @param storageFree free bytes of the disk of the client's files
     * @param betweenSteps called before every step; may end the measurement by an exception
     */
    public Map<String, Object> measure(JsonObject measurement, Downloads files, SampleSpec spec, long storageFree,
            Runnable betweenSteps) {
        long base = facts.processBytes();
        Map<String, MeasuredCase> graphs = new LinkedHashMap<>();
        try {
            List<Case> cases = firstSteps(measurement, files, spec, graphs, betweenSteps);
            visit(cases, betweenSteps);
            List<Measured> times = new ArrayList<>();
            for (Case one : cases) {
                times.add(new Measured(one.group(), one.work().number("forward_multiply_adds"),
                    one.work().number("backward_multiply_adds"), one.work().number("activation_bytes"),
                    one.work().number("parameter_bytes"), one.work().number("trained_parameters"),
                    one.graph().median(one.batchSize())));
            }
            return profile(CostFit.cost(times, null, base, measurement.text("model")), storageFree);
        } catch (IOException error) {
            throw new EdgeFLError("the measurement cannot be read: " + error.getMessage(), "Try again.", error);
        } finally {
            graphs.values().forEach(MeasuredCase::close);
        }
    }

    /** Load every graph and try every case once, from the least work to the most, as long as there is time. */
    private List<Case> firstSteps(JsonObject measurement, Downloads files, SampleSpec spec,
            Map<String, MeasuredCase> graphs, Runnable betweenSteps) throws IOException {
        List<Case> cases = new ArrayList<>();
        long start = System.nanoTime();
        for (JsonObject work : measurement.objects("cases")) {
            betweenSteps.run();
            String group = work.text("graph") + work.text("weights");
            double need = 5 * (work.number("activation_bytes") + work.number("parameter_bytes"));
            boolean enough = graphs.size() >= 3 || graphs.containsKey(group);
            boolean late = (System.nanoTime() - start) / 1e9 > seconds / 2;
            if (need > facts.memoryFreeBytes() / 4.0 || (enough && late)) {
                break;
            }
            if (!graphs.containsKey(group)) {
                Submodel submodel = Submodel.parse(Files.readAllBytes(files.file(work.text("submodel"))));
                Path weights = files.file(work.text("weights"));
                graphs.put(group, new MeasuredCase(engine, files.file(work.text("graph")), submodel,
                    new LinkedHashMap<>(BodyReader.read(weights).dense()), spec));
            }
            Case one = new Case(graphs.get(group), work.count("batch_size", 1), work, group);
            one.graph().step(one.batchSize());
            one.graph().step(one.batchSize());
            one.graph().note(one.batchSize(), one.graph().step(one.batchSize()));
            cases.add(one);
        }
        if (graphs.size() < 3) {
            throw new EdgeFLError("this device could measure only " + graphs.size() + " graphs of the federation",
                "Free some memory, or give a profile of an equal device.");
        }
        return cases;
    }

    /** Take turns, so that a slow moment meets all cases and not one. */
    private void visit(List<Case> cases, Runnable betweenSteps) {
        long start = System.nanoTime();
        for (int visit = 0; visit < MOST_VISITS; visit++) {
            for (Case one : cases) {
                betweenSteps.run();
                double step = one.graph().step(one.batchSize());
                int repeat = (int) Math.max(1, Math.min(5, VISIT_SECONDS / Math.max(step, 1e-6)));
                for (int i = 0; i < repeat; i++) {
                    one.graph().note(one.batchSize(), one.graph().step(one.batchSize()));
                }
            }
            if (visit + 1 >= LEAST_VISITS && (System.nanoTime() - start) / 1e9 > seconds / 2) {
                return;
            }
        }
    }

    private Map<String, Object> profile(Map<String, Object> cost, long storageFree) {
        Map<String, Object> machine = new LinkedHashMap<>();
        machine.put("architecture", facts.architecture());
        machine.put("system", facts.system());
        machine.put("cores", facts.cores());
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("schema", "edgefl.device_profile/1");
        fields.put("device_name", facts.deviceName());
        fields.put("machine", machine);
        fields.put("engine", engine.description());
        fields.put("threads", engine.threads());
        fields.put("cost", cost);
        fields.put("memory_total_bytes", facts.memoryTotalBytes());
        fields.put("memory_free_bytes", Math.min(facts.memoryFreeBytes(), facts.memoryTotalBytes()));
        fields.put("storage_free_bytes", storageFree);
        fields.put("measured_at", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
        return fields;
    }
}
