package org.edgefl.app.phone;

import android.app.Notification;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.app.PendingIntent;
import android.content.Context;
import android.content.Intent;
import android.graphics.drawable.Icon;
import android.os.Build;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.app.R;
import org.edgefl.app.RequiresApi;

/** What the status bar says while the phone works, with a button to stop it. */
final class TrainingNotification {
    static final int ID = 1;
    static final String CHANNEL = "training";

    private final Context context;

    TrainingNotification(Context context) {
        this.context = context;
        NotificationChannel channel = new NotificationChannel(
            CHANNEL, context.getString(R.string.channel_training), NotificationManager.IMPORTANCE_LOW);
        channel.setDescription(context.getString(R.string.channel_training_description));
        context.getSystemService(NotificationManager.class).createNotificationChannel(channel);
    }

    /** Show what the phone is doing now. Without the permission to notify, the system shows nothing, and that is all. */
    void update(PhoneActivity activity) {
        context.getSystemService(NotificationManager.class).notify(ID, of(activity));
    }

    Notification of(PhoneActivity activity) {
        Notification.Builder builder = new Notification.Builder(context, CHANNEL)
            .setSmallIcon(R.drawable.notification_training)
            .setContentTitle(title(activity))
            .setContentText(text(activity))
            .setOngoing(true)
            .setOnlyAlertOnce(true)
            .setCategory(Notification.CATEGORY_PROGRESS)
            .addAction(new Notification.Action.Builder(Icon.createWithResource(context, R.drawable.notification_training),
                context.getString(R.string.notification_stop), stop()).build());
        PendingIntent app = app();
        if (app != null) {
            builder.setContentIntent(app);
        }
        if (activity.phase() == Phase.TRAINING && activity.steps() > 0) {
            builder.setProgress(activity.steps(), activity.step(), false);
        } else if (activity.isBusy() && activity.phase() != Phase.WAITING) {
            builder.setProgress(0, 0, true);
        }
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.S) {
            showAtOnce(builder);
        }
        return builder.build();
    }

    /** The owner has just asked for this: show it at once, and not ten seconds later. */
    @RequiresApi(31)
    private static void showAtOnce(Notification.Builder builder) {
        builder.setForegroundServiceBehavior(Notification.FOREGROUND_SERVICE_IMMEDIATE);
    }

    private String title(PhoneActivity activity) {
        return switch (activity.phase()) {
            case JOINING -> context.getString(R.string.notification_joining);
            case ASKING, IDLE -> context.getString(R.string.notification_asking);
            case WAITING -> context.getString(R.string.notification_waiting);
            case DOWNLOADING -> context.getString(R.string.notification_downloading, activity.round());
            case TRAINING -> context.getString(R.string.notification_training, activity.round());
            case SENDING -> context.getString(R.string.notification_sending, activity.round());
        };
    }

    private String text(PhoneActivity activity) {
        if (activity.phase() != Phase.TRAINING || activity.steps() == 0) {
            return activity.message();
        }
        if (Double.isNaN(activity.secondsLeft())) {
            return context.getString(R.string.notification_steps, activity.step(), activity.steps());
        }
        long seconds = (long) Math.ceil(activity.secondsLeft());
        return seconds < 120
            ? context.getString(R.string.notification_seconds_left, activity.step(), activity.steps(), seconds)
            : context.getString(
                R.string.notification_minutes_left, activity.step(), activity.steps(), (seconds + 59) / 60);
    }

    private PendingIntent stop() {
        Intent intent = new Intent(context, TrainingService.class).setAction(TrainingService.STOP);
        return PendingIntent.getService(context, 0, intent, PendingIntent.FLAG_IMMUTABLE);
    }

    private PendingIntent app() {
        Intent launcher = context.getPackageManager().getLaunchIntentForPackage(context.getPackageName());
        return launcher == null ? null : PendingIntent.getActivity(context, 0, launcher, PendingIntent.FLAG_IMMUTABLE);
    }
}
