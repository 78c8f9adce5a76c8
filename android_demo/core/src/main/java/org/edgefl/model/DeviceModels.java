package org.edgefl.model;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.edgefl.EdgeFLError;
import org.edgefl.engine.Engine;
import org.edgefl.values.SampleSpec;

/**
 * The models on a device, loaded for predictions: both of one task.
 *
 * @param round the round of that task, from 1; 0 if there is none
 * @param personal as it was trained here, or null before the first task
 * @param shared as it was downloaded for the same task, or null before it
 */
public record DeviceModels(int round, Predictor personal, Predictor shared) implements AutoCloseable {
    /** The models of a device that has not finished a task. */
    public static final DeviceModels NONE = new DeviceModels(0, null, null);

    private static final int TRIES = 20;
    private static final long PAUSE_MILLISECONDS = 10;

    /**
     * Load the models of a home folder. An agent may run in it, and replace them at any moment.
     *
     * @param sample what a sample of the federation is
     */
    public static DeviceModels open(Path home, Engine engine, SampleSpec sample) throws IOException {
        Path folder = home.resolve("model");
        KeptModels models = KeptModels.read(folder);
        for (int attempt = 1; models != null; attempt++) {
            try {
                return load(folder, models, engine, sample);
            } catch (IOException | EdgeFLError error) {
                KeptModels now = KeptModels.read(folder);
                boolean replaced = !models.equals(now) || isMissing(error);
                if (!replaced || attempt == TRIES) {
                    throw error;
                }
                models = now;
                pause();
            }
        }
        return NONE;
    }

    /** A file that is not there was replaced, even if its task is the last one again by now. */
    private static boolean isMissing(Throwable error) {
        return error instanceof NoSuchFileException
            || (error.getCause() != null && isMissing(error.getCause()));
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE_MILLISECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static DeviceModels load(Path folder, KeptModels models, Engine engine, SampleSpec sample)
            throws IOException {
        Path graph = folder.resolve(models.graph());
        Predictor personal =
            GraphPredictor.load(engine, graph, folder.resolve(models.personal()), sample, models.parameters());
        try {
            return new DeviceModels(models.round() + 1, personal,
                GraphPredictor.load(engine, graph, folder.resolve(models.shared()), sample, models.parameters()));
        } catch (IOException | RuntimeException error) {
            personal.close();
            throw error;
        }
    }

    @Override
    public void close() {
        if (personal != null) {
            personal.close();
        }
        if (shared != null) {
            shared.close();
        }
    }
}
