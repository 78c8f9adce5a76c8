package org.edgefl.app.phone;

import android.content.Context;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.IntFunction;
import org.edgefl.app.R;
import org.edgefl.app.telemetry.PhoneFacts;
import org.edgefl.engine.Engine;
import org.edgefl.engine.OnnxEngine;

/** The engine in this APK, if it has one: an app may be built without the native library, or for another processor. */
final class TrainingEngine {
    private final Context context;
    private final IntFunction<Engine> maker;
    private final FutureTask<Boolean> loading;

    /**
     * Begin to look, on another thread: a native library takes a moment to load.
     *
     * @param maker makes an engine with a number of threads
     */
    TrainingEngine(Context context, Executor background, IntFunction<Engine> maker) {
        this.context = context;
        this.maker = maker;
        this.loading = new FutureTask<>(() -> loads(maker));
        background.execute(loading);
    }

    /**
     * Makes engines of onnxruntime. A lambda and not a reference to the constructor: a reference would be linked, and fail
     * without the engine's classes, here and not where it is called.
     */
    static IntFunction<Engine> onnxruntime() {
        return threads -> new OnnxEngine(threads);
    }

    static boolean loads(IntFunction<Engine> maker) {
        try {
            maker.apply(1).description();
            return true;
        } catch (LinkageError | RuntimeException missing) {
            return false;
        }
    }

    /** Return why this phone cannot train, or null. */
    String problem() {
        boolean there;
        try {
            there = loading.get();
        } catch (ExecutionException error) {
            there = false;
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
            there = false;
        }
        return there ? null : context.getString(R.string.message_engine_missing);
    }

    /** Return an engine; its telemetry is off before any session exists. */
    Engine open() {
        return maker.apply(new PhoneFacts(context).engineThreads());
    }
}
