package org.edgefl.app.phone;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import android.os.Looper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.edgefl.EdgeFLError;
import org.edgefl.agent.Invitation;
import org.edgefl.app.R;
import org.edgefl.app.telemetry.Phones;
import org.edgefl.http.InvalidPairing;
import org.edgefl.http.Pairing;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.Shadows;
import org.robolectric.shadows.ShadowLooper;

@RunWith(RobolectricTestRunner.class)
public final class AndroidPhoneTest {
    @Before
    public void coolPhoneOnACharger() {
        FakeKeystore.install();
        Phones.battery(true, 4000, 30);
    }

    @After
    public void stop() {
        Members.phone().close();
    }

    @Test
    public void appWithoutAnEngineSaysSoAndStartsNothing() throws IOException {
        Members.join();
        AndroidPhone phone = new AndroidPhone(Members.app(), threads -> {
            throw new NoClassDefFoundError("ai/onnxruntime/OrtEnvironment");
        }, 30);
        assertEquals(Members.app().getString(R.string.message_engine_missing), phone.engineProblem());
        assertFalse(phone.begin(Occasion.NOW, () -> { }));
        assertEquals(phone.engineProblem(), phone.activity().message());
        assertNull(phone.models().personal());
        phone.close();
    }

    @Test
    public void engineOfThisMachineHasNoProblem() {
        assertNull(Members.phone().engineProblem());
    }

    @Test
    public void plainHttpToAnotherMachineIsRefused() {
        String uri = "edgefl://join?url=http%3A%2F%2F10.0.0.5%3A8000&key=edgefl-key-1";
        assertThrows(InvalidPairing.class, () -> Members.phone().invitation(uri));
    }

    @Test
    public void coordinatorThatDoesNotAnswerIsAProblemWithAFix() {
        String uri = "edgefl://join?url=http%3A%2F%2F127.0.0.1%3A9&key=edgefl-key-1";
        EdgeFLError error = assertThrows(EdgeFLError.class, () -> Members.phone().invitation(uri));
        assertFalse(error.fix().isEmpty());
    }

    @Test
    public void memberOfOneFederationMustLeaveItBeforeAnother() throws IOException {
        AndroidPhone phone = Members.join();
        Pairing other = new Pairing("https://10.0.0.5:8443", "edgefl-key-1", "other", List.of());
        phone.join(new Invitation(other, phone.federation().sample(), Invitation.Trust.AUTHORITY, "pin"));
        assertNull(Shadows.shadowOf(Members.app()).getNextStartedService());
        assertEquals(Members.app().getString(R.string.message_leave_first), phone.activity().message());
        assertEquals("device-1", phone.federation().deviceId());
    }

    @Test
    public void ownersWishGoesBeforeTheNightsWork() throws Exception {
        AndroidPhone phone = Members.join();
        phone.put(new OwnerSettings(true, 0, 0, 200, 40, 600));
        CountDownLatch night = new CountDownLatch(1);
        CountDownLatch now = new CountDownLatch(1);
        assertTrue(phone.begin(Occasion.NIGHT, night::countDown));
        assertTrue(phone.begin(Occasion.NOW, now::countDown));
        assertTrue("the night has ended", night.await(30, TimeUnit.SECONDS));
        assertTrue(phone.isRunning());
        assertFalse("one at a time", phone.begin(Occasion.NOW, () -> { }));
        assertFalse(phone.begin(Occasion.NIGHT, () -> { }));
        phone.stopTraining();
        assertTrue(now.await(30, TimeUnit.SECONDS));
    }

    @Test
    public void listenersAreCalledOnTheMainThreadOnceForManyChanges() {
        ActivityBoard board = new ActivityBoard();
        List<Thread> told = new ArrayList<>();
        Runnable listener = () -> told.add(Thread.currentThread());
        board.addListener(listener);
        for (int step = 1; step <= 100; step++) {
            board.step(step, 100, 1);
        }
        assertTrue("not in the middle of the agent's work", told.isEmpty());
        ShadowLooper.idleMainLooper();
        assertEquals(1, told.size());
        assertSame(Looper.getMainLooper().getThread(), told.get(0));
        assertEquals(100, board.get().step());
        board.removeListener(listener);
        board.tell();
        ShadowLooper.idleMainLooper();
        assertEquals(1, told.size());
    }

    @Test
    public void lostKeyEndsTheRunWithTheFix() throws Exception {
        AndroidPhone phone = Members.join();
        FakeKeystore.loseKeys();
        CountDownLatch ended = new CountDownLatch(1);
        assertTrue(phone.begin(Occasion.NOW, ended::countDown));
        assertTrue(ended.await(30, TimeUnit.SECONDS));
        assertTrue(phone.activity().message(), phone.activity().message().contains("Join again"));
        assertNotNull(phone.federation());
    }
}
