package org.edgefl.app.phone;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;

import android.app.job.JobInfo;
import android.app.job.JobScheduler;
import android.net.NetworkCapabilities;
import java.io.IOException;
import org.edgefl.app.EdgeFLApp;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

@RunWith(RobolectricTestRunner.class)
public final class NightPlanTest {
    private static final OwnerSettings AT_NIGHT = new OwnerSettings(true, 22, 7, 200, 40, 600);

    @Before
    public void keystore() {
        FakeKeystore.install();
    }

    private static JobInfo planned() {
        return Members.app().getSystemService(JobScheduler.class).getPendingJob(NightPlan.JOB);
    }

    @Test
    public void nightHasExactlyTheseConstraints() throws IOException {
        Members.join().put(AT_NIGHT);
        JobInfo job = planned();
        assertEquals(NightJob.class.getName(), job.getService().getClassName());
        assertTrue(job.isRequireCharging());
        assertTrue(job.isRequireDeviceIdle());
        assertTrue(job.isRequireBatteryNotLow());
        assertTrue(job.isPersisted());
        assertTrue(job.isPeriodic());
        assertEquals(15 * 60 * 1000L, job.getIntervalMillis());
        assertTrue(job.getRequiredNetwork().hasCapability(NetworkCapabilities.NET_CAPABILITY_NOT_METERED));
    }

    @Test
    public void switchPlansAndCancelsTheNight() throws IOException {
        AndroidPhone phone = Members.join();
        phone.put(OwnerSettings.DEFAULT);
        assertNull(planned());
        phone.put(AT_NIGHT);
        assertNotNull(planned());
        phone.put(OwnerSettings.DEFAULT);
        assertNull(planned());
    }

    @Test
    public void changedLimitDoesNotEndAWindowUnderWay() throws IOException {
        AndroidPhone phone = Members.join();
        phone.put(AT_NIGHT);
        JobInfo before = planned();
        phone.put(new OwnerSettings(true, 20, 6, 50, 38, 60));
        assertSame(before, planned());
    }

    @Test
    public void nightsBeginWithAFederationAndEndWithIt() throws IOException {
        Members.phone().put(AT_NIGHT);
        assertNull(planned());
        AndroidPhone member = Members.join();
        member.planNights();
        assertNotNull(planned());
        member.leave();
        assertNull(planned());
        assertNull(member.federation());
        assertNull(Members.restart().federation());
    }

    @Test
    public void settingsAreThereAfterARestart() throws IOException {
        OwnerSettings changed = new OwnerSettings(true, 20, 6, 50, 38, 60);
        Members.phone().put(changed);
        assertEquals(changed, Members.restart().settings());
    }

    @Test
    public void appStartBringsTheJobBackThatForceStopTookAway() throws IOException {
        Members.join().put(AT_NIGHT);
        Members.app().getSystemService(JobScheduler.class).cancelAll();
        EdgeFLApp again = Members.app();
        again.onCreate();
        assertNotNull(planned());
    }

    @Test
    public void taskThatANightDidNotFinishMayTakeTheNextOne() {
        OwnerSettings owner = OwnerSettings.DEFAULT;
        int night = (owner.toHour() - owner.fromHour() + 24) % 24;
        assertTrue(owner.minutesATask() >= 60 * (24 + night));
    }
}
