package org.edgefl.app.phone;

import android.os.Handler;
import android.os.Looper;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.atomic.AtomicBoolean;
import org.edgefl.agent.Progress;

/** Where the agent's thread writes what it does, and listeners on the main thread are told that it changed. */
final class ActivityBoard implements Progress {
    private final Handler main = new Handler(Looper.getMainLooper());
    private final Set<Runnable> listeners = new CopyOnWriteArraySet<>();
    private final AtomicBoolean telling = new AtomicBoolean();
    private volatile PhoneActivity activity = PhoneActivity.IDLE;

    PhoneActivity get() {
        return activity;
    }

    void put(PhoneActivity next) {
        activity = next;
        tell();
    }

    /** Nothing runs for a reason, unless something does: then it goes on, and says its own. */
    void fail(String message) {
        PhoneActivity now = activity;
        put(now.isBusy() ? now : new PhoneActivity(Phase.IDLE, 0, 0, 0, Double.NaN, message));
    }

    @Override
    public void enter(Phase phase, int round, String message) {
        put(new PhoneActivity(phase, round, 0, 0, Double.NaN, message));
    }

    @Override
    public void step(int step, int steps, double secondsLeft) {
        PhoneActivity now = activity;
        put(new PhoneActivity(now.phase(), now.round(), step, steps, secondsLeft, now.message()));
    }

    void addListener(Runnable listener) {
        listeners.add(listener);
    }

    void removeListener(Runnable listener) {
        listeners.remove(listener);
    }

    /** Call the listeners. However many changes come before the main thread gets to it, it is once. */
    void tell() {
        if (telling.compareAndSet(false, true)) {
            main.post(() -> {
                telling.set(false);
                listeners.forEach(Runnable::run);
            });
        }
    }
}
