package org.edgefl.app.screens;

import android.content.Context;
import android.database.SQLException;
import android.os.Handler;
import android.os.Looper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.edgefl.EdgeFLError;
import org.edgefl.app.R;
import org.edgefl.app.phone.Phone;

/** A screen's work that reads files or the network: off the main thread, with the answer back on it. */
final class Background {
    private final Context context;
    private final Phone phone;
    private final Handler main = new Handler(Looper.getMainLooper());
    private boolean closed;

    Background(Context context, Phone phone) {
        this.context = context;
        this.phone = phone;
    }

    /** Do something whether or not the screen is still there; tell the screen if it is. */
    <T> void run(Callable<T> work, Consumer<T> done, Consumer<Problem> failed) {
        phone.background(() -> answer(work, done, failed, () -> true));
    }

    /** No answer reaches the screen from now on. */
    void close() {
        closed = true;
    }

    private <T> void answer(Callable<T> work, Consumer<T> done, Consumer<Problem> failed, BooleanSupplier wanted) {
        try {
            T found = work.call();
            post(() -> done.accept(found), wanted);
        } catch (EdgeFLError | IOException | UncheckedIOException | SQLException | SecurityException error) {
            Problem problem = Problem.of(context, error);
            post(() -> failed.accept(problem), wanted);
        } catch (OutOfMemoryError full) {
            Problem problem = new Problem(
                context.getString(R.string.problem_memory), context.getString(R.string.problem_memory_fix));
            post(() -> failed.accept(problem), wanted);
        } catch (RuntimeException mistake) {
            throw mistake;
        } catch (Exception unexpected) {
            throw new IllegalStateException(unexpected);
        }
    }

    private void post(Runnable answer, BooleanSupplier wanted) {
        main.post(() -> {
            if (!closed && wanted.getAsBoolean()) {
                answer.run();
            }
        });
    }

    /** Questions of which only the newest one's answer counts: older ones are skipped, or their answers dropped. */
    final class Latest {
        private final Consumer<Runnable> thread;
        private final AtomicInteger newest = new AtomicInteger();

        /** Questions to files. */
        Latest() {
            this(phone::background);
        }

        /** Questions that a thread answers. */
        Latest(Consumer<Runnable> thread) {
            this.thread = thread;
        }

        /** Ask, and forget what was asked before. */
        <T> void run(Callable<T> work, Consumer<T> done, Consumer<Problem> failed) {
            int mine = newest.incrementAndGet();
            thread.accept(() -> {
                if (newest.get() == mine) {
                    answer(work, done, failed, () -> newest.get() == mine);
                }
            });
        }

        /** Forget what was asked. */
        void cancel() {
            newest.incrementAndGet();
        }
    }
}
