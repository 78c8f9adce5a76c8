package org.edgefl.app.phone;

import android.app.Service;
import android.content.Context;
import android.content.Intent;
import android.content.pm.ServiceInfo;
import android.os.Build;
import android.os.Handler;
import android.os.IBinder;
import android.os.Looper;
import org.edgefl.app.EdgeFLApp;
import org.edgefl.app.R;

/**
 * Keeps the process alive while the owner's phone joins or trains, with a notification that says how it goes.
 *
 * <p>The work itself is an agent of {@link AgentRunner}; this ends when the agent does. A foreground service does not keep
 * the processor awake on battery when the screen is off: that would take a wake lock, for which the app has no permission.
 * Training then goes on whenever the phone wakes up, and at full speed while it charges.
 */
public final class TrainingService extends Service {
    static final String TRAIN = "org.edgefl.app.TRAIN";
    static final String JOIN = "org.edgefl.app.JOIN";
    static final String STOP = "org.edgefl.app.STOP";

    private static final long NOTIFY_MILLISECONDS = 1000;

    private final Handler main = new Handler(Looper.getMainLooper());
    private final Runnable changed = this::notifySoon;
    private TrainingNotification notification;
    private boolean notifying;
    private int lastStart;

    /** Begin in the foreground; the system throws an IllegalStateException if it does not allow that now. */
    static void start(Context context, String action) {
        context.startForegroundService(new Intent(context, TrainingService.class).setAction(action));
    }

    private AndroidPhone phone() {
        return ((EdgeFLApp) getApplication()).phone();
    }

    @Override
    public void onCreate() {
        super.onCreate();
        notification = new TrainingNotification(this);
        phone().addListener(changed);
    }

    @Override
    public IBinder onBind(Intent intent) {
        return null;
    }

    /**
     * Sticky: a process that the system killed comes back with no intent, and goes on with the files that it left. The
     * intent need not be delivered again, because all that matters is in them. Joining does not go on: its key was in
     * memory only.
     */
    @Override
    public int onStartCommand(Intent intent, int flags, int startId) {
        lastStart = startId;
        String action = intent == null || intent.getAction() == null ? TRAIN : intent.getAction();
        if (action.equals(STOP)) {
            phone().stopTraining();
            endIfIdle();
            return START_NOT_STICKY;
        }
        if (!goToForeground()) {
            phone().failed(R.string.message_foreground_not_allowed);
            stopSelf(startId);
            return START_NOT_STICKY;
        }
        Occasion occasion = action.equals(JOIN) ? Occasion.JOIN : Occasion.NOW;
        if (!phone().begin(occasion, () -> main.post(this::endIfIdle))) {
            endIfIdle();
        }
        return occasion == Occasion.JOIN ? START_NOT_STICKY : START_STICKY;
    }

    /** Return whether the system allows it: not from the background, and not after six hours a day (Android 15). */
    private boolean goToForeground() {
        try {
            if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.Q) {
                startForeground(TrainingNotification.ID, notification.of(phone().activity()),
                    ServiceInfo.FOREGROUND_SERVICE_TYPE_DATA_SYNC);
            } else {
                startForeground(TrainingNotification.ID, notification.of(phone().activity()));
            }
            return true;
        } catch (IllegalStateException | SecurityException notAllowed) {
            // ForegroundServiceStartNotAllowedException is an IllegalStateException; older phones do not have its class.
            return false;
        }
    }

    /** End after the agent, unless the owner has begun something new since: then the system keeps the service. */
    private void endIfIdle() {
        if (!phone().isRunningInForeground()) {
            stopForeground(STOP_FOREGROUND_REMOVE);
            stopSelf(lastStart);
        }
    }

    /** Show a change, at most once a second: steps may be much faster. */
    private void notifySoon() {
        if (!notifying) {
            notifying = true;
            main.postDelayed(() -> {
                notifying = false;
                if (phone().isRunningInForeground()) {
                    notification.update(phone().activity());
                }
            }, NOTIFY_MILLISECONDS);
        }
    }

    /** The time for services of this kind is over (Android 14). */
    @Override
    public void onTimeout(int startId) {
        endInTime();
    }

    /** The six hours a day for services of this kind are over (Android 15). A few seconds are left. */
    @Override
    public void onTimeout(int startId, int type) {
        endInTime();
    }

    private void endInTime() {
        phone().timeIsUp();
        stopForeground(STOP_FOREGROUND_REMOVE);
        stopSelf();
    }

    @Override
    public void onDestroy() {
        phone().removeListener(changed);
        main.removeCallbacksAndMessages(null);
        phone().endForeground();
        super.onDestroy();
    }
}
