package org.edgefl.app.phone;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import android.app.ForegroundServiceStartNotAllowedException;
import android.app.Notification;
import android.app.Service;
import android.content.Intent;
import android.content.pm.ServiceInfo;
import java.io.IOException;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.app.R;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.Shadows;
import org.robolectric.android.controller.ServiceController;

@RunWith(RobolectricTestRunner.class)
public final class TrainingServiceTest {
    private final ServiceController<TrainingService> controller = Robolectric.buildService(TrainingService.class);

    @Before
    public void keystore() {
        FakeKeystore.install();
    }

    private TrainingService started(String action) {
        TrainingService service = controller.create().get();
        Intent intent = action == null ? null : new Intent(Members.app(), TrainingService.class).setAction(action);
        assertEquals(Service.START_STICKY, service.onStartCommand(intent, 0, 1));
        return service;
    }

    private static String text(Notification notification, String extra) {
        return String.valueOf(notification.extras.getCharSequence(extra));
    }

    @Test
    public void trainingRunsInTheForegroundAndEndsWithTheOwnersStop() throws IOException, InterruptedException {
        AndroidPhone phone = Members.join();
        phone.trainNow();
        Intent intent = Shadows.shadowOf(Members.app()).getNextStartedService();
        assertEquals(TrainingService.class.getName(), intent.getComponent().getClassName());
        TrainingService service = started(intent.getAction());
        assertEquals(ServiceInfo.FOREGROUND_SERVICE_TYPE_DATA_SYNC, service.getForegroundServiceType());
        assertNotNull(Shadows.shadowOf(service).getLastForegroundNotification());
        assertTrue(phone.isRunning());
        Intent stop = new Intent(Members.app(), TrainingService.class).setAction(TrainingService.STOP);
        assertEquals(Service.START_NOT_STICKY, service.onStartCommand(stop, 0, 2));
        assertTrue(Members.await(30, () -> Shadows.shadowOf(service).isStoppedBySelf()));
        assertFalse(phone.isRunning());
        assertEquals(Phase.IDLE, phone.activity().phase());
    }

    @Test
    public void workOfTheNightThatFollowsAtOnceDoesNotKeepTheService() throws IOException, InterruptedException {
        AndroidPhone phone = Members.join();
        TrainingService service = started(TrainingService.TRAIN);
        phone.stopTraining();
        assertTrue(phone.awaitEnd(30));
        assertTrue(phone.begin(Occasion.NIGHT, () -> { }));
        assertTrue(Members.await(30, () -> Shadows.shadowOf(service).isStoppedBySelf()));
        assertTrue(phone.isRunning());
        phone.stopTraining();
        assertTrue(phone.awaitEnd(30));
    }

    @Test
    public void serviceThatComesBackWithoutIntentGoesOn() throws IOException {
        Members.join();
        started(null);
        assertTrue(Members.phone().isRunning());
        controller.destroy();
        assertTrue(Members.phone().awaitEnd(30));
    }

    @Test
    public void timeoutOfTheSystemStopsInTimeAndSaysWhatComesNext() throws IOException {
        AndroidPhone phone = Members.join();
        phone.put(new OwnerSettings(true, 22, 7, 200, 40, 600));
        TrainingService service = started(TrainingService.TRAIN);
        service.onTimeout(1, ServiceInfo.FOREGROUND_SERVICE_TYPE_DATA_SYNC);
        assertTrue(Shadows.shadowOf(service).isStoppedBySelf());
        assertFalse(phone.isRunning());
        assertEquals(Members.app().getString(R.string.message_time_is_up_goes_on_at_night), phone.activity().message());
    }

    @Test
    public void systemThatAllowsNoForegroundIsNoCrash() throws IOException {
        AndroidPhone phone = Members.join();
        TrainingService service = controller.create().get();
        Shadows.shadowOf(service).setThrowInStartForeground(
            new ForegroundServiceStartNotAllowedException("Time limit already exhausted"));
        Intent intent = new Intent(Members.app(), TrainingService.class).setAction(TrainingService.TRAIN);
        assertEquals(Service.START_NOT_STICKY, service.onStartCommand(intent, 0, 1));
        assertTrue(Shadows.shadowOf(service).isStoppedBySelf());
        assertFalse(phone.isRunning());
        assertEquals(Members.app().getString(R.string.message_foreground_not_allowed), phone.activity().message());
    }

    @Test
    public void phoneWithoutFederationSaysSoAndStartsNothing() {
        AndroidPhone phone = Members.phone();
        phone.trainNow();
        assertNull(Shadows.shadowOf(Members.app()).getNextStartedService());
        assertEquals(Members.app().getString(R.string.message_join_first), phone.activity().message());
    }

    @Test
    public void notificationSaysRoundStepAndTimeAndCanStop() {
        TrainingNotification notification = new TrainingNotification(Members.app());
        Notification training =
            notification.of(new PhoneActivity(Phase.TRAINING, 3, 12, 40, 19.2, ""));
        assertEquals("Round 3: training", text(training, Notification.EXTRA_TITLE));
        assertEquals("Step 12 of 40, 20 s left", text(training, Notification.EXTRA_TEXT));
        assertEquals(40, training.extras.getInt(Notification.EXTRA_PROGRESS_MAX));
        assertEquals(12, training.extras.getInt(Notification.EXTRA_PROGRESS));
        assertEquals("Stop", training.actions[0].title.toString());
        Intent stop = Shadows.shadowOf(training.actions[0].actionIntent).getSavedIntent();
        assertEquals(TrainingService.STOP, stop.getAction());
        Notification waiting = notification.of(new PhoneActivity(Phase.WAITING, 0, 0, 0, Double.NaN, "too warm"));
        assertEquals("too warm", text(waiting, Notification.EXTRA_TEXT));
        Notification slow = notification.of(new PhoneActivity(Phase.TRAINING, 1, 1, 400, 3540.5, ""));
        assertEquals("Step 1 of 400, 60 min left", text(slow, Notification.EXTRA_TEXT));
    }
}
