package org.edgefl.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.EdgeFLError;
import org.edgefl.golden.GoldenTasks;
import org.edgefl.http.Pairing;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Invitations, joining, the token's vault, and leaving. */
class JoiningTest {
    private static final String PIN = "sha256:" + "A".repeat(43);

    @TempDir
    private Path folder;
    private final FakeCoordinator coordinator = new FakeCoordinator();
    private final TestDevice device = new TestDevice();

    /** A vault that turns texts around, until its key is gone. */
    private static final class Vault implements TokenVault {
        private boolean lost;

        @Override
        public String seal(String token) {
            lost = false;
            return new StringBuilder(token).reverse().toString();
        }

        @Override
        public String open(String sealed) {
            if (lost) {
                throw new EdgeFLError("the key of this phone's vault is gone", "Join again.");
            }
            return new StringBuilder(sealed).reverse().toString();
        }
    }

    @Test
    void anInvitationSaysWhatIsAskedForAndByWhomAndKeepsNothing() throws IOException {
        coordinator.pin = PIN;
        Pairing code = new Pairing("https://10.0.0.5:8443", "edgefl-key-abc", "digits", List.of(PIN));
        Invitation invitation = Invitation.ask(code, coordinator.connector());
        assertEquals(Invitation.Trust.PINNED, invitation.trust());
        assertEquals(PIN, invitation.pin());
        assertEquals(3, invitation.sample().classes());
        assertEquals(List.of("GET /v1/sample"), coordinator.requests);
        Pairing web = new Pairing("https://fl.example.org", "edgefl-key-abc", null, List.of());
        assertEquals(Invitation.Trust.AUTHORITY, Invitation.ask(web, coordinator.connector()).trust());
        coordinator.pin = null;
        assertEquals(Invitation.Trust.PLAIN, Invitation.ask(TestDevice.CODE, coordinator.connector()).trust());
        assertNull(Invitation.ask(TestDevice.CODE, coordinator.connector()).pin());
    }

    @Test
    void anInvitationThatCannotBeHadSaysWhatToDo() {
        Pairing without = new Pairing("http://127.0.0.1:1", null, null, List.of());
        assertThrows(EdgeFLError.class, () -> Invitation.ask(without, coordinator.connector()));
        coordinator.unreachable = true;
        EdgeFLError error =
            assertThrows(EdgeFLError.class, () -> Invitation.ask(TestDevice.CODE, coordinator.connector()));
        assertTrue(error.fix().contains("http://127.0.0.1:1"));
    }

    @Test
    void theFederationCanBeReadWhileAnAgentHasTheFolder() throws IOException {
        device.join(folder, coordinator);
        try (AgentHome home = new AgentHome(folder)) {
            assertThrows(EdgeFLError.class, () -> new AgentHome(folder));
            JoinedFederation joined = JoinedFederation.read(home.folder());
            assertEquals("http://127.0.0.1:1", joined.url());
            assertEquals("digits", joined.federation());
            assertEquals(3, joined.sample().classes());
        }
    }

    @Test
    void aMemberKeepsWhatASampleIsWhenTheCoordinatorNoLongerMakesSense() throws IOException {
        device.join(folder, coordinator);
        coordinator.sample = new HashMap<>(GoldenTasks.sample());
        coordinator.sample.put("shape", "anything");
        assertThrows(EdgeFLError.class, () -> device.run(folder, coordinator));
        assertEquals(3, JoinedFederation.read(folder).sample().classes());
    }

    @Test
    void anEnrolmentSaysHowManySamplesThereAre() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        device.run(folder, coordinator);
        assertEquals(GoldenTasks.data(0).trainingSamples(), coordinator.enrolments.get(0).whole("samples"));
        assertEquals(List.of(), coordinator.samples);
    }

    @Test
    void whoJoinsWithoutSamplesTellsTheirNumberBeforeTheFirstPoll() throws IOException {
        device.join(folder, coordinator);
        assertFalse(coordinator.enrolments.get(0).has("samples"));
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        coordinator.whenPolled =
            () -> assertEquals(List.of(GoldenTasks.data(0).trainingSamples()), coordinator.samples);
        device.run(folder, coordinator);
        assertEquals(1, coordinator.results.size());
    }

    @Test
    void aNumberOfSamplesThatHasChangedIsToldBeforeTheNextPoll() throws IOException {
        for (String task : new String[] {"task-7", "task-8", "task-9"}) {
            coordinator.plans.add(GoldenTasks.plan(0, Map.of("task_id", task)));
        }
        device.mostTasks = 3;
        device.data = spec -> GoldenTasks.data(0, coordinator.results.isEmpty() ? 0.5 : 0.1);
        device.run(folder, coordinator);
        assertEquals(3, coordinator.results.size());
        assertEquals(List.of(GoldenTasks.data(0, 0.1).trainingSamples()), coordinator.samples);
    }

    @Test
    void aTaskOnAnotherNumberThanWasToldIsFollowedByTheTrueOne() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        coordinator.plans.add(GoldenTasks.plan(0, Map.of("task_id", "task-8")));
        device.mostTasks = 2;
        boolean[] training = {false};
        coordinator.whenPolled = () -> training[0] = coordinator.results.isEmpty();
        device.data = spec -> GoldenTasks.data(0, training[0] && coordinator.results.isEmpty() ? 0.1 : 0.5);
        device.run(folder, coordinator);
        assertEquals(2, coordinator.results.size());
        assertEquals(List.of(GoldenTasks.data(0, 0.5).trainingSamples()), coordinator.samples);
    }

    @Test
    void aCoordinatorFromBeforeNumbersOfSamplesTakesTheDeviceWithoutOne() throws IOException {
        coordinator.older = true;
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        device.run(folder, coordinator);
        assertEquals(1, coordinator.enrolments.size());
        assertFalse(coordinator.enrolments.get(0).has("samples"));
        assertEquals(1, coordinator.results.size());
    }

    @Test
    void theTokenIsOnTheDiskOnlyAsTheVaultSealedIt() throws IOException {
        device.vault = new Vault();
        device.join(folder, coordinator);
        assertFalse(Files.readString(folder.resolve("device.json")).contains("edgefl-token-1"));
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        device.pairing = null;
        device.run(folder, coordinator);
        assertEquals(1, coordinator.results.size());
    }

    @Test
    void aTokenWhoseKeyIsGoneIsReplacedByJoiningAgainAsTheSameDevice() throws IOException {
        Vault vault = new Vault();
        device.vault = vault;
        device.join(folder, coordinator);
        vault.lost = true;
        device.pairing = null;
        EdgeFLError error = assertThrows(EdgeFLError.class, () -> device.run(folder, coordinator));
        assertEquals("Join again.", error.fix());
        assertNotNull(JoinedFederation.read(folder));
        device.pairing = TestDevice.CODE;
        device.join(folder, coordinator);
        assertEquals(2, coordinator.enrolments.size());
        assertEquals(coordinator.enrolments.get(0).text("enrolment_id"),
            coordinator.enrolments.get(1).text("enrolment_id"));
    }

    @Test
    void whoLeavesKeepsNothingOfTheFederation() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        coordinator.plans.add(GoldenTasks.plan(0, Map.of("task_id", "task-8")));
        device.mostTasks = 2;
        device.afterStep = () -> coordinator.unreachable = device.steps.size() == 20;
        device.run(folder, coordinator);
        assertTrue(Files.exists(folder.resolve("task/result.safetensors")));
        try (AgentHome home = new AgentHome(folder)) {
            home.leave();
        }
        assertNull(JoinedFederation.read(folder));
        assertEquals(List.of(), TaskHistory.read(folder));
        for (String name : new String[] {"task", "cache", "model"}) {
            assertEquals(0, folder.resolve(name).toFile().list().length, name);
        }
        List<String> left = List.of("cache", "lock", "model", "task", "traffic.json");
        assertEquals(left, List.of(folder.toFile().listFiles()).stream().map(File::getName).sorted().toList());
        coordinator.unreachable = false;
        new TestDevice().join(folder, coordinator);
        assertEquals(2, coordinator.enrolments.size());
    }
}
