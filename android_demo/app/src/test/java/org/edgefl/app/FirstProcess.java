package org.edgefl.app;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;
import static org.junit.Assume.assumeTrue;
import static org.robolectric.Shadows.shadowOf;

import android.Manifest;
import android.content.pm.PackageManager;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.BooleanSupplier;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.app.phone.Members;
import org.edgefl.app.phone.TrainingService;
import org.edgefl.app.screens.Finger;
import org.edgefl.app.telemetry.Phones;
import org.edgefl.http.Pairing;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ServiceController;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowActivity.PermissionsRequest;

/**
 * The first process of {@link WholeFlowTest}: an owner joins, draws, begins to train, and turns to another app. It is
 * killed there, and fails if it is not. Runs in a JVM of its own, and not by itself.
 */
@RunWith(RobolectricTestRunner.class)
@Config(qualifiers = "w411dp-h891dp-xhdpi")
public final class FirstProcess {
    private static final double PATIENCE_SECONDS = 150;
    private static final double CHECKPOINT_SECONDS = 1;
    private static final int SAMPLES_A_CLASS = 6;

    private LeftBehind left;
    private Pairing pairing;
    private final Finger finger = new Finger();
    private final Digits digits = new Digits();

    @Before
    public void begin() throws Exception {
        assumeTrue("WholeFlowTest starts this", System.getProperty("app.folder") != null);
        left = new LeftBehind(Path.of(System.getProperty("app.folder")));
        pairing = Pairing.parse(System.getProperty("app.link"), false);
        left.begin();
        Phones.ordinary();
        Members.checkpointEvery(CHECKPOINT_SECONDS);
    }

    private static void await(BooleanSupplier something) throws InterruptedException {
        Waiting.until(PATIENCE_SECONDS, something);
    }

    @Test
    public void ownerJoinsDrawsAndBeginsToTrain() throws Exception {
        lookAtInvitations();
        join();
        drawSamples();
        beginADrawing();
        beginToTrain();
        left.write("activity", finger.goAway());
        Members.await(PATIENCE_SECONDS, () -> false);
        fail("nobody has killed this process");
    }

    /** By the app's own link when it starts; by the page's link, which another app opens, while it is open. */
    private void lookAtInvitations() throws Exception {
        finger.open(pairing.toAppUri());
        seeInvitation();
        finger.readablePicture("flow_01_invitation");
        finger.tap(R.id.invitation_close);
        assertTrue(finger.sees(R.id.link_card));
        finger.openAgain(pairing.toPageUri());
        seeInvitation();
        assertFalse("nothing is kept before the owner joins", Files.exists(Members.home().resolve("device.json")));
    }

    private void seeInvitation() throws Exception {
        await(() -> finger.sees(R.id.join));
        assertEquals("digits", finger.text(R.id.invitation_name));
        assertEquals(pairing.url(), finger.text(R.id.invitation_address));
        assertEquals("A grey picture of 8 × 8 pixels.", finger.text(R.id.invitation_sample));
        assertEquals("It belongs to one of 10 classes.", finger.text(R.id.invitation_classes));
        String pin = pairing.pins().get(0);
        assertTrue(finger.text(R.id.invitation_trust), finger.text(R.id.invitation_trust)
            .contains(pin.substring("sha256:".length()).substring(0, 8)));
    }

    private void join() throws Exception {
        finger.tap(R.id.join);
        ServiceController<TrainingService> service = Members.runService();
        await(() -> Members.phone().activity().phase() == Phase.JOINING && finger.sees(R.id.working_card));
        finger.readablePicture("flow_02_joining");
        await(() -> finger.sees(R.id.joined_card));
        await(() -> shadowOf(service.get()).isStoppedBySelf());
        service.destroy();
        assertEquals("digits", finger.text(R.id.joined_name));
        assertFalse(finger.text(R.id.joined_device).isEmpty());
        assertTrue("it was measured", Files.exists(Members.home().resolve("profile.json")));
        finger.readablePicture("flow_03_joined");
    }

    private void drawSamples() throws Exception {
        finger.tap(R.id.joined_data);
        await(() -> finger.text(R.id.count_heading).equals("No samples yet"));
        finger.readablePicture("flow_04_no_samples");
        int drawn = 0;
        for (int label : Digits.CLASSES) {
            finger.chooseClass(label);
            for (int i = 0; i < SAMPLES_A_CLASS; i++) {
                float[][] lines = digits.draw(label);
                finger.draw(lines[0]);
                if (label == 4 && i == 0) {
                    rotateInTheMiddle();
                }
                if (lines.length > 1) {
                    finger.draw(lines[1]);
                }
                finger.tap(R.id.add);
                String count = ++drawn == 1 ? "1 sample" : drawn + " samples";
                await(() -> finger.text(R.id.count_heading).equals(count));
            }
        }
        finger.readablePicture("flow_07_added");
        finger.scrollTo(R.id.count_rows);
        finger.readablePicture("flow_08_counts");
    }

    private void rotateInTheMiddle() {
        finger.readablePicture("flow_05_drawing");
        byte[] before = finger.drawing();
        assertTrue(before.length > 0);
        finger.rotate();
        assertArrayEquals("the lines are gone", before, finger.drawing());
        assertEquals("Add as class 4", finger.text(R.id.add));
        finger.readablePicture("flow_06_rotated");
        finger.rotate();
        assertArrayEquals("the lines are gone", before, finger.drawing());
    }

    /** One that the owner does not add before the process dies. */
    private void beginADrawing() throws Exception {
        finger.draw(digits.draw(7)[0]);
        left.write("drawing", finger.drawing());
    }

    private void beginToTrain() throws Exception {
        finger.go(R.string.train_title);
        await(() -> finger.find(R.id.train_now).isEnabled());
        finger.readablePicture("flow_09_ready");
        finger.tap(R.id.train_now);
        allowNotifications();
        Members.runService();
        await(() -> finger.text(R.id.status_steps).matches("Step \\d+ of \\d+"));
        assertEquals("Training", finger.text(R.id.status));
        assertEquals("Round 1", finger.text(R.id.status_round));
        assertFalse(finger.sees(R.id.train_now));
        assertTrue(finger.sees(R.id.train_stop));
        finger.readablePicture("flow_10_training");
    }

    /** The system asks the owner, who says yes. */
    private void allowNotifications() {
        PermissionsRequest asked = shadowOf(finger.activity()).getLastRequestedPermission();
        assertEquals(Manifest.permission.POST_NOTIFICATIONS, asked.requestedPermissions[0]);
        assertNull("nothing starts before the answer", shadowOf(Members.app()).peekNextStartedService());
        shadowOf(Members.app()).grantPermissions(asked.requestedPermissions);
        finger.activity().onRequestPermissionsResult(asked.requestCode, asked.requestedPermissions,
            new int[] {PackageManager.PERMISSION_GRANTED});
        finger.settle();
    }
}
