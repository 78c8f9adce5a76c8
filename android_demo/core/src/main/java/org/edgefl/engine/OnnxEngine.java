package org.edgefl.engine;

import ai.onnxruntime.NodeInfo;
import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.edgefl.EdgeFLError;
import org.edgefl.rules.Unsupported;
import org.edgefl.values.Submodel;
import org.edgefl.wire.DType;
import org.edgefl.wire.Tensor;

/** Graphs on the ordinary onnxruntime, whose training packages are not needed. */
public final class OnnxEngine implements Engine {
    private static final long MOST_GRAPH_BYTES = 256L << 20;
    private static final int MOST_FOLDED_BYTES = 1 << 20;

    private final OrtEnvironment environment;
    private final int threads;

    /** An engine with a number of threads. */
    public OnnxEngine(int threads) {
        this.threads = threads;
        try {
            this.environment = OrtEnvironment.getEnvironment();
            this.environment.setTelemetry(false);
        } catch (OrtException | UnsatisfiedLinkError error) {
            throw new Unsupported("onnxruntime cannot be loaded here: " + error.getMessage());
        }
    }

    @Override
    public String description() {
        return "onnxruntime " + environment.getVersion();
    }

    @Override
    public int threads() {
        return threads;
    }

    @Override
    public TrainStep train(Path graph, Submodel submodel, Map<String, Tensor> weights, float[] labelMask) {
        OrtSession session = load(graph);
        try {
            return new OnnxTrainStep(environment, session, submodel, weights, labelMask);
        } catch (OrtException | RuntimeException | OutOfMemoryError error) {
            throw closed(session, error);
        }
    }

    @Override
    public Inference infer(Path graph, Map<String, Tensor> weights) {
        return forward(graph, weights, "logits");
    }

    @Override
    public Inference features(Path graph, Map<String, Tensor> weights) {
        return forward(graph, weights, "features");
    }

    private Inference forward(Path graph, Map<String, Tensor> weights, String output) {
        OrtSession session = load(graph);
        try {
            return new OnnxInference(environment, session, weights, output);
        } catch (OrtException | RuntimeException | OutOfMemoryError error) {
            throw closed(session, error);
        }
    }

    /** Free a session that does not fit its task: an app lives on, and would lose that memory with every such task. */
    private static RuntimeException closed(OrtSession session, Throwable error) {
        try {
            session.close();
        } catch (OrtException ignored) {
            error.addSuppressed(ignored);
        }
        if (error instanceof OutOfMemoryError full) {
            throw full;
        }
        return problem(error);
    }

    private static EdgeFLError problem(Throwable cause) {
        return cause instanceof EdgeFLError known ? known : new InvalidGraph(String.valueOf(cause.getMessage()), cause);
    }

    /** Load on a thread that is thrown away: onnxruntime changes the float mode of the thread that loads. */
    private OrtSession load(Path graph) {
        try {
            return onThreadOfItsOwn(() -> open(graph));
        } catch (IOException | OrtException error) {
            throw new InvalidGraph(String.valueOf(error.getMessage()), error);
        }
    }

    /** What can fail while a graph is loaded. */
    interface Loading<T> {
        T load() throws IOException, OrtException;
    }

    /**
     * Call on a new thread. Whatever it throws is thrown here, errors too: an OutOfMemoryError that nobody catches would
     * end a phone's whole process, and the task would do so again after every restart.
     */
    static <T> T onThreadOfItsOwn(Loading<T> loading) throws IOException, OrtException {
        FutureTask<T> task = new FutureTask<>(loading::load);
        new Thread(task, "edgefl-load-graph").start();
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return task.get();
                } catch (InterruptedException again) {
                    interrupted = true;
                }
            }
        } catch (ExecutionException failed) {
            throw unwrapped(failed.getCause());
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static RuntimeException unwrapped(Throwable cause) throws IOException, OrtException {
        if (cause instanceof Error error) {
            throw error;
        }
        if (cause instanceof IOException error) {
            throw error;
        }
        if (cause instanceof OrtException error) {
            throw error;
        }
        return problem(cause);
    }

    private OrtSession open(Path graph) throws IOException, OrtException {
        if (Files.size(graph) > MOST_GRAPH_BYTES) {
            throw new InvalidGraph("it has more than 256 MiB");
        }
        byte[] bytes = Files.readAllBytes(graph);
        GraphCheck.check(bytes);
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            options.setIntraOpNumThreads(threads);
            options.setInterOpNumThreads(1);
            options.setMemoryPatternOptimization(false);
            options.addConfigEntry("session.load_model_format", "ONNX");
            // Constants are computed while a graph is loaded, which nothing can interrupt: a small graph could take hours.
            options.addConfigEntry("optimization.constant_folding_max_output_size_in_bytes",
                Integer.toString(Math.max(MOST_FOLDED_BYTES, bytes.length)));
            options.addConfigEntry("session.set_denormal_as_zero", "1");
            options.addConfigEntry("session.intra_op.allow_spinning", "0");
            options.addConfigEntry("session.model_external_initializers_file_folder_path", "/nonexistent/edgefl");
            return environment.createSession(bytes, options);
        }
    }

    /** Wrap a tensor without a copy. */
    static OnnxTensor wrap(OrtEnvironment environment, Tensor tensor) throws OrtException {
        return switch (tensor.dtype()) {
            case F32 -> OnnxTensor.createTensor(environment, tensor.floats(), tensor.shape());
            case I64 -> OnnxTensor.createTensor(environment, tensor.longs(), tensor.shape());
            case I32 -> OnnxTensor.createTensor(environment, tensor.bytes().asIntBuffer(), tensor.shape());
            default -> throw new Unsupported("a tensor of type " + tensor.dtype() + " in a graph");
        };
    }

    /** Wrap the weights that a session declares as inputs; {@code others} are inputs that are not weights. */
    static Map<String, OnnxTensor> inputs(OrtEnvironment environment, OrtSession session, Map<String, Tensor> weights,
            List<String> others) throws OrtException {
        Map<String, OnnxTensor> found = new HashMap<>();
        for (Map.Entry<String, NodeInfo> input : session.getInputInfo().entrySet()) {
            if (others.contains(input.getKey())) {
                continue;
            }
            Tensor tensor = weights.get(input.getKey());
            if (tensor == null) {
                throw new InvalidGraph("it reads '" + input.getKey() + "', which the submodel does not have");
            }
            TensorInfo info = (TensorInfo) input.getValue().getInfo();
            OnnxJavaType expected = tensor.dtype() == DType.F32 ? OnnxJavaType.FLOAT
                : tensor.dtype() == DType.I64 ? OnnxJavaType.INT64 : OnnxJavaType.INT32;
            if (info.type != expected) {
                throw new InvalidGraph("it reads '" + input.getKey() + "' as another type");
            }
            found.put(input.getKey(), wrap(environment, tensor));
        }
        return found;
    }
}
