package org.edgefl.engine;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.util.Collection;
import java.util.Map;
import java.util.Set;

/** Runs of one session, which another thread may end. */
final class OnnxRuns {
    private final OrtSession session;
    private final OrtSession.RunOptions options;
    private boolean closed;
    private volatile boolean cancelled;

    OnnxRuns(OrtSession session) throws OrtException {
        this.session = session;
        this.options = new OrtSession.RunOptions();
    }

    /** Run into memory that onnxruntime allocates. */
    OrtSession.Result run(Map<String, OnnxTensor> feed) throws OrtException {
        try {
            return session.run(feed, options);
        } catch (OrtException error) {
            throw failure(error);
        }
    }

    /** Run into memory that is bound to the outputs. */
    void run(Map<String, OnnxTensor> feed, Map<String, OnnxTensor> outputs) throws OrtException {
        try {
            session.run(feed, Set.of(), outputs, options).close();
        } catch (OrtException error) {
            throw failure(error);
        }
    }

    /** A run that was ended fails like any other; only this class knows why. */
    private OrtException failure(OrtException error) {
        if (cancelled) {
            throw new Cancelled();
        }
        return error;
    }

    /** End the run under way and all later ones. The options must not be touched after they are freed. */
    synchronized void cancel() {
        if (closed) {
            return;
        }
        cancelled = true;
        try {
            options.setTerminate(true);
        } catch (OrtException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Free the session and its tensors. */
    void close(Collection<OnnxTensor> tensors) {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            options.close();
        }
        tensors.forEach(OnnxTensor::close);
        try {
            session.close();
        } catch (OrtException alreadyClosed) {
            // Nothing is left to free.
        }
    }
}
