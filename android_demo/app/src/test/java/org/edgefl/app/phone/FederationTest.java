package org.edgefl.app.phone;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import android.content.pm.ServiceInfo;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.edgefl.agent.Invitation;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.samples.SampleStore.Sample;
import org.edgefl.app.telemetry.Phones;
import org.edgefl.data.LocalData;
import org.edgefl.json.JsonObject;
import org.edgefl.model.DeviceModels;
import org.edgefl.model.Predictor.Prediction;
import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.Shadows;
import org.robolectric.android.controller.ServiceController;

/** The phone in a real federation: a coordinator in a process of its own, real graphs on the real engine. */
@RunWith(RobolectricTestRunner.class)
public final class FederationTest {
    private static final double PATIENCE_SECONDS = 150;

    @Rule
    public final TemporaryFolder folder = new TemporaryFolder();

    private Coordinator coordinator;

    @Before
    public void phone() {
        FakeKeystore.install();
        Phones.battery(true, 4000, 30);
        Phones.memory(4_000_000_000L, 2_000_000_000L);
    }

    @After
    public void close() {
        Members.phone().close();
        if (coordinator != null) {
            coordinator.close();
        }
    }

    private static void join(Coordinator coordinator) throws InterruptedException {
        AndroidPhone phone = Members.phone();
        Invitation invitation = phone.invitation(coordinator.pairingUri());
        assertEquals(Invitation.Trust.PINNED, invitation.trust());
        assertEquals(10, invitation.sample().classes());
        assertFalse("nothing may be kept before the owner joins", Files.exists(Members.home().resolve("device.json")));
        phone.join(invitation);
        Members.runService();
        Members.await(PATIENCE_SECONDS, () -> !phone.isRunning());
        assertNotNull(phone.activity().message(), phone.federation());
    }

    private static void importDigits(Coordinator coordinator) throws Exception {
        try (InputStream file = Files.newInputStream(coordinator.digits())) {
            AndroidPhone phone = Members.phone();
            assertEquals(120, phone.samples().importNpz(phone.federation().sample(), file));
        }
    }

    private static List<TaskRecord> accepted() {
        return Members.phone().history().stream().filter(task -> task.outcome().equals("accepted"))
            .collect(Collectors.toList());
    }

    @Test
    public void phoneJoinsTrainsTwoRoundsAndPredictsWithBothModels() throws Exception {
        coordinator = new Coordinator(folder.getRoot().toPath(), 2, 3);
        join(coordinator);
        assertSecretsAreSealed(coordinator);
        importDigits(coordinator);
        AndroidPhone phone = Members.phone();
        assertWaitsWhileItIsWarm(phone);
        phone.trainNow();
        ServiceController<TrainingService> service = Members.runService();
        assertTrue(phone.activity().message(),
            Members.await(PATIENCE_SECONDS, () -> Shadows.shadowOf(service.get()).isStoppedBySelf()));
        assertEquals(Phase.IDLE, phone.activity().phase());
        List<TaskRecord> rounds = accepted();
        assertEquals(phone.history().toString(), 2, rounds.size());
        assertEquals(2, rounds.get(0).round());
        assertEquals(1, rounds.get(1).round());
        assertTrue(rounds.get(0).loss() < rounds.get(1).loss());
        assertCosts(rounds.get(0).telemetry());
        assertPredicts(phone);
        phone.leave();
        assertNull(phone.federation());
        assertTrue(phone.history().isEmpty());
        assertFalse(Files.exists(Members.home().resolve("device.json")));
    }

    private static void assertWaitsWhileItIsWarm(AndroidPhone phone) throws InterruptedException {
        Phones.battery(false, 4000, 47);
        phone.trainNow();
        ServiceController<TrainingService> service = Members.runService();
        assertTrue(Members.await(PATIENCE_SECONDS, () -> phone.activity().phase() == Phase.WAITING));
        assertTrue(phone.activity().message(), phone.activity().message().contains("47 °C"));
        assertTrue("nothing was asked for", phone.history().isEmpty());
        service.destroy();
        assertTrue(phone.awaitEnd(30));
        Phones.battery(false, 4000, 30);
        Phones.current(-900_000);
    }

    private static void assertSecretsAreSealed(Coordinator coordinator) throws Exception {
        String key = coordinator.pairingUri().replaceAll(".*key=([A-Za-z0-9_-]+).*", "$1");
        try (Stream<Path> files = Files.walk(Members.app().getDataDir().toPath())) {
            for (Path file : files.filter(Files::isRegularFile).collect(Collectors.toList())) {
                String text = new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
                assertFalse("the join key is in " + file, text.contains(key));
                assertFalse("a token is in " + file, text.contains("edgefl-token-"));
            }
        }
    }

    private static void assertCosts(JsonObject telemetry) {
        assertTrue(telemetry.object("memory").whole("peak_bytes") > 0);
        assertEquals("android battery counter", telemetry.object("energy").text("source"));
        assertEquals("none", telemetry.object("thermal").text("end_status"));
        assertTrue(telemetry.object("transfer").whole("down_bytes") > 0);
        assertTrue(telemetry.object("latency").number("round_seconds") > 0);
    }

    private static void assertPredicts(AndroidPhone phone) {
        LocalData data = phone.samples().data(phone.federation().sample());
        assertEquals(12, data.validationSamples());
        Sample digit = phone.samples().page(3, 0, 1).get(0);
        try (DeviceModels models = phone.models()) {
            Prediction own = models.personal().predict(digit.raw());
            Prediction shared = models.shared().predict(digit.raw());
            assertEquals(10, own.probabilities().length);
            assertEquals(10, shared.probabilities().length);
            assertTrue(models.personal().accuracy(data) >= 0 && models.shared().accuracy(data) <= 1);
            assertTrue("it was trained on this sample or its like", own.probabilities()[3] > 0.1);
            assertTrue(models.personal().bytes() > 0 && models.personal().medianSeconds() > 0);
        }
    }

    @Test
    public void taskGoesOnFromItsCheckpointAfterTheSystemHasEndedTheProcess() throws Exception {
        coordinator = new Coordinator(folder.getRoot().toPath(), 1, 3000);
        Members.putProfile();
        join(coordinator);
        importDigits(coordinator);
        AndroidPhone before = Members.phone();
        before.trainNow();
        ServiceController<TrainingService> service = Members.runService();
        assertTrue(Members.await(PATIENCE_SECONDS, () -> before.activity().step() >= 40));
        service.get().onTimeout(1, ServiceInfo.FOREGROUND_SERVICE_TYPE_DATA_SYNC);
        assertFalse(before.isRunning());
        Path checkpoint = Members.home().resolve("task/checkpoint.safetensors");
        assertTrue(Files.exists(checkpoint));

        AndroidPhone after = Members.restart();
        assertNotNull(after.federation());
        after.trainNow();
        int[] first = {0};
        after.addListener(() -> first[0] = first[0] == 0 ? after.activity().step() : first[0]);
        ServiceController<TrainingService> again = Members.runService();
        assertTrue(Members.await(PATIENCE_SECONDS, () -> first[0] > 0));
        assertTrue("it began with step " + first[0], first[0] > 40);
        again.destroy();
        assertTrue(after.awaitEnd(30));
        assertTrue("nothing was refused", after.history().isEmpty());
    }
}
