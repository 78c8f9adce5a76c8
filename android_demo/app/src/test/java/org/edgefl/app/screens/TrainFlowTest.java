package org.edgefl.app.screens;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.Manifest;
import android.content.pm.PackageManager;
import android.view.View;
import android.widget.ProgressBar;
import android.widget.Switch;
import android.widget.TextView;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.app.R;
import org.edgefl.app.phone.OwnerSettings;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowActivity.PermissionsRequest;

/** Training: now, at night, within limits. */
@RunWith(RobolectricTestRunner.class)
@Config(application = FakeApp.class, qualifiers = "w411dp-h891dp-xhdpi")
public final class TrainFlowTest {
    private final Hand hand = new Hand();

    private void openReady() {
        hand.phone.federation = Federations.joined(Federations.digits());
        hand.phone.samples.add(Federations.digits(), 1, "drawn", new byte[784]);
        hand.open(null);
        hand.go(Destination.TRAIN);
    }

    private static void allowNotifications() {
        shadowOf(RuntimeEnvironment.getApplication()).grantPermissions(Manifest.permission.POST_NOTIFICATIONS);
    }

    @Test
    public void trainingShowsItsProgressAndStops() {
        allowNotifications();
        openReady();
        hand.tap(R.id.train_now);
        assertEquals(1, hand.phone.trainings);
        assertEquals("Asking for a task…", hand.text(R.id.status));
        assertFalse(hand.sees(R.id.train_now));

        hand.phone.be(Phase.TRAINING, 3, 12, 40, 25.4, "");
        hand.settle();
        assertEquals("Training", hand.text(R.id.status));
        assertEquals("Round 3", hand.text(R.id.status_round));
        assertEquals("Step 12 of 40", hand.text(R.id.status_steps));
        assertEquals("About 30 seconds left", hand.text(R.id.status_left));
        ProgressBar bar = hand.find(R.id.status_bar);
        assertEquals(300, bar.getProgress());

        hand.phone.be(Phase.TRAINING, 3, 13, 40, 4000, "");
        hand.settle();
        assertEquals("About 67 minutes left", hand.text(R.id.status_left));

        hand.rotate();
        assertEquals("Step 13 of 40", hand.text(R.id.status_steps));
        hand.tap(R.id.train_stop);
        assertEquals(1, hand.phone.stops);
        assertEquals("Not training", hand.text(R.id.status));
        assertEquals("Stopped. What was done is kept.", hand.text(R.id.status_message));
        assertTrue(hand.sees(R.id.train_now));
    }

    @Test
    public void aPhoneThatWaitsSaysWhy() {
        openReady();
        hand.phone.be(Phase.WAITING, 0, 0, 0, Double.NaN, "the battery is at 41 °C, and 40 °C is the limit");
        hand.settle();
        assertEquals("Waiting", hand.text(R.id.status));
        assertEquals("The battery is at 41 °C, and 40 °C is the limit.", hand.text(R.id.status_message));
        assertFalse("nothing moves while it waits", hand.sees(R.id.status_bar));
        assertTrue(hand.sees(R.id.train_stop));
    }

    @Test
    public void notificationsAreAskedForOnceAndMayBeRefused() {
        openReady();
        hand.tap(R.id.train_now);
        assertEquals("asked first", 0, hand.phone.trainings);
        PermissionsRequest asked = shadowOf(hand.activity()).getLastRequestedPermission();
        assertEquals(Manifest.permission.POST_NOTIFICATIONS, asked.requestedPermissions[0]);
        hand.activity().onRequestPermissionsResult(asked.requestCode, asked.requestedPermissions,
            new int[] {PackageManager.PERMISSION_DENIED});
        hand.settle();
        assertEquals("trains without", 1, hand.phone.trainings);
        assertTrue(hand.sees(R.id.notifications_refused));
        hand.tap(R.id.train_stop);
        hand.tap(R.id.train_now);
        assertEquals("not asked again", 2, hand.phone.trainings);
    }

    @Test
    public void withoutSamplesItLeadsToMyData() {
        hand.phone.federation = Federations.joined(Federations.digits());
        hand.open(null);
        hand.go(Destination.TRAIN);
        assertFalse(hand.find(R.id.train_now).isEnabled());
        hand.tap(R.id.train_missing_go);
        assertTrue(hand.sees(R.id.pad));
        hand.phone.samples.add(Federations.digits(), 1, "drawn", new byte[784]);
        hand.go(Destination.TRAIN);
        assertTrue(hand.find(R.id.train_now).isEnabled());
        assertFalse(hand.sees(R.id.train_missing));
    }

    @Test
    public void nightsAndLimitsAreKept() {
        openReady();
        Switch night = hand.find(R.id.at_night);
        hand.tap(night);
        assertTrue(hand.phone.settings.atNight());
        tap(R.id.from_hour, R.id.stepper_more, 3);
        assertEquals("past midnight", 1, hand.phone.settings.fromHour());
        tap(R.id.to_hour, R.id.stepper_less, 6);
        assertEquals(1, hand.phone.settings.toHour());
        assertEquals("Equal hours mean the whole day.", hand.text(R.id.hours_how));
        tap(R.id.megabytes, R.id.stepper_less, 4);
        assertEquals(10, hand.phone.settings.megabytesADay());
        assertFalse("less never ends without a limit", stepper(R.id.megabytes, R.id.stepper_less).isEnabled());
        tap(R.id.megabytes, R.id.stepper_more, 10);
        assertEquals(0, hand.phone.settings.megabytesADay());
        assertEquals("No limit", ((TextView) stepper(R.id.megabytes, R.id.stepper_value)).getText().toString());
        tap(R.id.degrees, R.id.stepper_less, 1);
        tap(R.id.minutes, R.id.stepper_more, 1);
        assertEquals(new OwnerSettings(true, 1, 1, 0, 39, 4320), hand.phone.settings);
    }

    private View stepper(int id, int part) {
        Stepper stepper = hand.find(id);
        return stepper.findViewById(part);
    }

    private void tap(int id, int part, int times) {
        for (int i = 0; i < times; i++) {
            hand.tap(stepper(id, part));
        }
    }

    @Test
    public void aValueBetweenTheStepsGoesToTheNextOne() {
        openReady();
        hand.phone.put(new OwnerSettings(false, 22, 7, 150, 40, 90));
        hand.settle();
        tap(R.id.megabytes, R.id.stepper_more, 1);
        assertEquals(200, hand.phone.settings.megabytesADay());
        tap(R.id.minutes, R.id.stepper_less, 1);
        assertEquals(60, hand.phone.settings.minutesATask());
    }
}
