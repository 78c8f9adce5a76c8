package org.edgefl.app.phone;

import android.app.job.JobInfo;
import android.app.job.JobScheduler;
import android.content.ComponentName;
import android.content.Context;

/**
 * Asks the system for windows at night, or takes that back.
 *
 * <p>A periodic job with the shortest period that Android allows, 15 minutes: in each window an agent sends, goes on, or
 * asks once, and ends if there is nothing to do. The system counts the time between windows, so no backoff is needed, and
 * Android allows none for jobs that wait for an idle phone. The hours of the night are checked when a window begins.
 */
final class NightPlan {
    static final int JOB = 1;

    private NightPlan() {}

    /** Plan the nights, or cancel them. A plan that exists stays: to replace it would end a window under way. */
    static void apply(Context context, boolean wanted) {
        JobScheduler scheduler = context.getSystemService(JobScheduler.class);
        boolean planned = scheduler.getPendingJob(JOB) != null;
        if (wanted && !planned) {
            scheduler.schedule(job(context));
        } else if (!wanted && planned) {
            scheduler.cancel(JOB);
        }
    }

    private static JobInfo job(Context context) {
        return new JobInfo.Builder(JOB, new ComponentName(context, NightJob.class))
            .setRequiresCharging(true)
            .setRequiredNetworkType(JobInfo.NETWORK_TYPE_UNMETERED)
            .setRequiresDeviceIdle(true)
            .setRequiresBatteryNotLow(true)
            .setPeriodic(JobInfo.getMinPeriodMillis())
            .setPersisted(true)
            .build();
    }
}
