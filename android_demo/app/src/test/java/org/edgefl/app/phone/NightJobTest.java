package org.edgefl.app.phone;

import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import android.app.job.JobParameters;
import java.io.IOException;
import java.time.LocalTime;
import org.edgefl.app.telemetry.Phones;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.Shadows;
import org.robolectric.util.ReflectionHelpers;

@RunWith(RobolectricTestRunner.class)
public final class NightJobTest {
    private final JobParameters window = ReflectionHelpers.callConstructor(JobParameters.class);

    @Before
    public void phoneOnACharger() {
        FakeKeystore.install();
        Phones.battery(true, 4000, 30);
    }

    private static OwnerSettings hours(int from, int to) {
        return new OwnerSettings(true, from, to, 200, 40, 600);
    }

    @Test
    public void windowOutsideOfTheOwnersHoursIsLeftAtOnce() throws IOException {
        int hour = LocalTime.now().getHour();
        Members.join().put(hours((hour + 2) % 24, (hour + 4) % 24));
        assertFalse(Robolectric.buildService(NightJob.class).create().get().onStartJob(window));
        assertFalse(Members.phone().isRunning());
    }

    @Test
    public void windowWithoutFederationOrSwitchIsLeftAtOnce() throws IOException {
        NightJob job = Robolectric.buildService(NightJob.class).create().get();
        Members.phone().put(hours(0, 0));
        assertFalse(job.onStartJob(window));
        Members.join().put(OwnerSettings.DEFAULT);
        assertFalse(job.onStartJob(window));
    }

    @Test
    public void stoppedWindowEndsTheAgentAndAsksForAnother() throws IOException {
        Members.join().put(hours(0, 0));
        NightJob job = Robolectric.buildService(NightJob.class).create().get();
        assertTrue(job.onStartJob(window));
        assertTrue(Members.phone().isRunning());
        assertTrue(job.onStopJob(window));
        assertFalse(Members.phone().isRunning());
    }

    @Test
    public void switchingTheNightOffEndsItsWorkAndAsksForNoOther() throws IOException, InterruptedException {
        AndroidPhone phone = Members.join();
        phone.put(hours(0, 0));
        NightJob job = Robolectric.buildService(NightJob.class).create().get();
        assertTrue(job.onStartJob(window));
        phone.put(OwnerSettings.DEFAULT);
        assertTrue(Members.await(30, () -> Shadows.shadowOf(job).getIsJobFinished()));
        assertFalse(phone.isRunning());
        assertFalse(Shadows.shadowOf(job).getIsRescheduleNeeded());
        assertFalse(job.onStopJob(window));
    }
}
