package org.edgefl.app.phone;

import android.app.job.JobParameters;
import android.app.job.JobService;
import org.edgefl.app.EdgeFLApp;

/** A window at night: the phone charges, is idle and on an unmetered network, so it may train. */
public final class NightJob extends JobService {
    private AndroidPhone phone() {
        return ((EdgeFLApp) getApplication()).phone();
    }

    @Override
    public boolean onStartJob(JobParameters window) {
        AndroidPhone phone = phone();
        boolean allowed = phone.wantsNights() && AgentParts.hours(phone.settings()).violated() == null;
        // Once it has nothing to do, the window ends; the next period brings another.
        return allowed && phone.begin(Occasion.NIGHT, () -> jobFinished(window, false));
    }

    /**
     * The phone was unplugged or taken up, or the window is over. The process may be frozen at any moment after this
     * returns, so it waits for the checkpoint.
     *
     * @return whether the system should open another window as soon as the phone allows it
     */
    @Override
    public boolean onStopJob(JobParameters window) {
        phone().endNight();
        return phone().wantsNights();
    }
}
