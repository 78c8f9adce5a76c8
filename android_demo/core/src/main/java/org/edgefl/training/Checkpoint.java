package org.edgefl.training;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.edgefl.EdgeFLError;
import org.edgefl.files.AtomicFile;
import org.edgefl.rules.State;
import org.edgefl.values.Submodel;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.Body;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.BodyWriter;
import org.edgefl.wire.DType;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Names;
import org.edgefl.wire.Tensor;

/**
 * Where a task stands, in one file: a task that goes on from it ends with the same bits as one that never stopped.
 *
 * <p>A body of kind {@code weights}: its digest tells a damaged file from a good one.
 */
final class Checkpoint {
    private final Path file;
    private final String task;

    Checkpoint(Path file, String task) {
        this.file = file;
        this.task = task;
    }

    /** What a checkpoint holds beside the state. */
    record Position(int steps, double lossSum, int lossCount, double[] times, Double accuracyBefore, double seconds) {}

    /** Write everything that changes. */
    void save(Submodel submodel, State state, Position position) throws IOException {
        SortedMap<String, Encoded> tensors = new TreeMap<>(Names.UTF8_ORDER);
        for (SubmodelTensor tensor : submodel.tensors()) {
            if (tensor.trained()) {
                tensors.put("w/" + tensor.name(), new Encoded.Dense(state.weights().get(tensor.name())));
            }
        }
        state.memory().forEach((name, tensor) -> tensors.put("m/" + name, new Encoded.Dense(tensor)));
        Tensor times = Tensor.zeros(DType.F64, position.times().length);
        times.doubles().put(position.times());
        tensors.put("times", new Encoded.Dense(times));
        SortedMap<String, String> about = new TreeMap<>();
        about.put("task", task);
        about.put("steps", Integer.toString(position.steps()));
        about.put("loss_sum", Long.toHexString(Double.doubleToRawLongBits(position.lossSum())));
        about.put("loss_count", Integer.toString(position.lossCount()));
        about.put("seconds", Double.toString(position.seconds()));
        if (position.accuracyBefore() != null) {
            about.put("accuracy_before", Double.toString(position.accuracyBefore()));
        }
        Body body = new Body("weights", about, null, tensors);
        AtomicFile.write(file, channel -> BodyWriter.write(body, channel));
    }

    /** Put a state back where it was, and return the position; null if there is no checkpoint of this task. */
    Position restore(State state) {
        if (!Files.exists(file)) {
            return null;
        }
        try {
            Body body = BodyReader.read(file);
            return task.equals(body.about().get("task")) ? restore(body, state) : null;
        } catch (IOException | EdgeFLError | NumberFormatException damaged) {
            return null;
        }
    }

    private static Position restore(Body body, State state) {
        SortedMap<String, Tensor> tensors = body.dense();
        SortedMap<String, String> about = body.about();
        double[] times = new double[tensors.get("times").size()];
        tensors.get("times").doubles().get(times);
        Position position = new Position(Integer.parseInt(about.get("steps")),
            Double.longBitsToDouble(Long.parseUnsignedLong(about.get("loss_sum"), 16)),
            Integer.parseInt(about.get("loss_count")), times,
            about.containsKey("accuracy_before") ? (Double) Double.parseDouble(about.get("accuracy_before")) : null,
            Double.parseDouble(about.get("seconds")));
        for (Map.Entry<String, Tensor> entry : tensors.entrySet()) {
            String name = entry.getKey().substring(Math.min(2, entry.getKey().length()));
            if (entry.getKey().startsWith("w/")) {
                state.weights().get(name).set(entry.getValue());
            } else if (entry.getKey().startsWith("m/")) {
                state.memory().put(name, entry.getValue());
            }
        }
        return position;
    }
}
