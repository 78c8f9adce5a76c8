package org.edgefl.app.phone;

import android.content.Context;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.IntFunction;
import org.edgefl.app.R;
import org.edgefl.app.telemetry.PhoneFacts;
import org.edgefl.engine.Engine;

/** The engine in this APK, if it has one: an app may be built without the native library, or for another processor. */
final class TrainingEngine {
    private final Context context;
    private final IntFunction<Engine> maker;
    private final FutureTask<Boolean> loading = new FutureTask<>(this::loads);

    /**
     * Begin to look, on another thread: a native library takes a moment to load.
     *
     * @param maker makes an engine with a number of threads
     */
    TrainingEngine(Context context, Executor background, IntFunction<Engine> maker) {
        this.context = context;
        this.maker = maker;
        background.execute(loading);
    }

    private boolean loads() {
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
