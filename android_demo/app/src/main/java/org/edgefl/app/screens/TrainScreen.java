package org.edgefl.app.screens;

import android.Manifest;
import android.content.SharedPreferences;
import android.content.pm.PackageManager;
import android.os.Build;
import android.widget.ProgressBar;
import android.widget.Switch;
import org.edgefl.agent.JoinedFederation;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.app.R;
import org.edgefl.app.phone.OwnerSettings;
import org.edgefl.app.phone.PhoneActivity;

/** Trains now, or at night; shows how it goes, and why it waits. */
final class TrainScreen extends Screen {
    private static final int ASK_TO_NOTIFY = 1;
    private static final String ASKED = "asked_to_notify";

    private final Background.Latest counting = background.new Latest();
    private final ProgressBar bar = find(R.id.status_bar);
    private final Switch atNight = find(R.id.at_night);
    private final LimitSteppers limits;
    private boolean samplesMissing;

    TrainScreen(MainActivity activity) {
        super(activity, R.layout.screen_train);
        limits = new LimitSteppers(view, phone);
        onClick(R.id.train_now, this::trainNow);
        onClick(R.id.train_stop, phone::stopTraining);
        onClick(R.id.train_missing_go,
            () -> activity.open(phone.federation() == null ? Destination.FEDERATION : Destination.DATA));
        // A click, not a change: the switch is also set by what the phone says.
        atNight.setOnClickListener(clicked -> setAtNight(atNight.isChecked()));
    }

    private void trainNow() {
        if (!askToNotify()) {
            phone.trainNow();
        }
    }

    private void setAtNight(boolean wanted) {
        OwnerSettings old = phone.settings();
        phone.put(new OwnerSettings(wanted, old.fromHour(), old.toHour(), old.megabytesADay(), old.mostDegrees(),
            old.minutesATask()));
        refresh();
    }

    /** From Android 13 on the owner decides whether progress may be notified: ask once, when it matters first. */
    private boolean askToNotify() {
        SharedPreferences kept = activity.getPreferences(MainActivity.MODE_PRIVATE);
        if (mayNotify() || kept.getBoolean(ASKED, false)) {
            return false;
        }
        kept.edit().putBoolean(ASKED, true).apply();
        activity.requestPermissions(new String[] {Manifest.permission.POST_NOTIFICATIONS},
            Destination.TRAIN.request(ASK_TO_NOTIFY));
        return true;
    }

    private boolean mayNotify() {
        return Build.VERSION.SDK_INT < Build.VERSION_CODES.TIRAMISU
            || activity.checkSelfPermission(Manifest.permission.POST_NOTIFICATIONS)
                == PackageManager.PERMISSION_GRANTED;
    }

    @Override
    void permission(int request, boolean granted) {
        phone.trainNow();
        refresh();
    }

    @Override
    void refresh() {
        PhoneActivity now = phone.activity();
        showStatus(now);
        showProgress(now);
        OwnerSettings settings = phone.settings();
        atNight.setChecked(settings.atNight());
        limits.show(settings);
        text(R.id.at_night_how).setText(settings.atNight() ? R.string.at_night_on : R.string.at_night_off);
        boolean asked = activity.getPreferences(MainActivity.MODE_PRIVATE).getBoolean(ASKED, false);
        show(R.id.notifications_refused, asked && !mayNotify());
        showMissing();
        countSamples(now);
    }

    /** Samples change on another screen; counting them reads files, so a running task does not ask again. */
    private void countSamples(PhoneActivity now) {
        JoinedFederation joined = phone.federation();
        if (joined == null || now.isBusy()) {
            return;
        }
        counting.run(() -> phone.samples().page(-1, 0, 1).isEmpty(), none -> {
            samplesMissing = none;
            showMissing();
        }, failed -> {
            samplesMissing = false;
            showMissing();
        });
    }

    private void showMissing() {
        boolean unjoined = phone.federation() == null;
        String engine = phone.engineProblem();
        boolean ready = engine == null && !unjoined && !samplesMissing;
        boolean busy = phone.activity().isBusy();
        show(R.id.train_missing, !ready && !busy);
        show(R.id.train_missing_go, engine == null);
        if (engine != null) {
            text(R.id.train_missing_text).setText(engine);
        } else {
            text(R.id.train_missing_text).setText(unjoined ? R.string.train_unjoined : R.string.train_no_samples);
            text(R.id.train_missing_go).setText(unjoined ? R.string.go_to_federation : R.string.go_to_data);
        }
        find(R.id.train_now).setEnabled(ready);
        show(R.id.train_now, !busy);
        show(R.id.train_stop, busy && phone.activity().phase() != Phase.JOINING);
        atNight.setEnabled(engine == null && (!unjoined || atNight.isChecked()));
    }

    private void showStatus(PhoneActivity now) {
        text(R.id.status).setText(switch (now.phase()) {
            case IDLE -> R.string.phase_idle;
            case JOINING -> R.string.joining;
            case ASKING -> R.string.phase_asking;
            case WAITING -> R.string.phase_waiting;
            case DOWNLOADING -> R.string.phase_downloading;
            case TRAINING -> R.string.phase_training;
            case SENDING -> R.string.phase_sending;
        });
        // While it trains, the round and the steps say it all, and the last message is an old one.
        show(R.id.status_message, now.phase() != Phase.TRAINING && !now.message().isEmpty());
        text(R.id.status_message).setText(Problem.sentence(now.message()));
        show(R.id.status_round, now.isBusy() && now.round() > 0);
        text(R.id.status_round).setText(activity.getString(R.string.round, now.round()));
    }

    private void showProgress(PhoneActivity now) {
        boolean training = now.phase() == Phase.TRAINING && now.steps() > 0;
        show(R.id.status_bar, now.isBusy() && now.phase() != Phase.WAITING);
        bar.setIndeterminate(!training);
        show(R.id.status_steps, training);
        boolean known = training && !Double.isNaN(now.secondsLeft());
        show(R.id.status_left, known);
        if (training) {
            bar.setProgress((int) (1000L * now.step() / now.steps()));
            text(R.id.status_steps).setText(activity.getResources().getQuantityString(
                R.plurals.steps, now.steps(), now.step(), now.steps()));
        }
        if (known) {
            text(R.id.status_left).setText(
                activity.getString(R.string.left, Units.roughly(activity, now.secondsLeft())));
        }
    }
}
