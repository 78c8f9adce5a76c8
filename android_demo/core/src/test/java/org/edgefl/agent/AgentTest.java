package org.edgefl.agent;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.edgefl.data.InvalidData;
import org.edgefl.golden.GoldenTasks;
import org.edgefl.json.JsonReader;
import org.edgefl.telemetry.Meters;
import org.edgefl.telemetry.TelemetrySections;
import org.edgefl.values.Refusal;
import org.edgefl.values.Refusal.Reason;
import org.edgefl.wire.Body;
import org.edgefl.wire.BodyWriter;
import org.edgefl.wire.Names;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The life of a device beside a coordinator in memory. */
class AgentTest {
    @TempDir
    private Path folder;
    private final FakeCoordinator coordinator = new FakeCoordinator();
    private final TestDevice device = new TestDevice();

    private static Map<String, Object> plan(int number, Map<String, Object> changes) {
        return GoldenTasks.plan(number, changes);
    }

    private byte[] trained(FakeCoordinator by) {
        SortedMap<String, String> nothing = new TreeMap<>(Names.UTF8_ORDER);
        return BodyWriter.toBytes(new Body("update", nothing, null, by.results.get(0).tensors()));
    }

    @Test
    void aPhoneJoinsBeforeItsOwnerHasAnySamples() throws IOException {
        device.data = spec -> null;
        device.join(folder, coordinator);
        assertEquals(1, coordinator.enrolments.size());
        assertEquals("phone-7", JoinedFederation.read(folder).deviceId());
        assertEquals(List.of("JOINING 0", "IDLE 0"), device.phases);
        device.join(folder, coordinator);
        assertEquals(1, coordinator.enrolments.size());
    }

    @Test
    void withoutSamplesNoTaskIsAskedForAndTheOwnerIsTold() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        device.data = spec -> null;
        device.run(folder, coordinator);
        assertEquals(0, coordinator.count("POST /v1/tasks/next"));
        assertTrue(device.messages.contains("there are no samples to train with"));
        assertEquals(List.of("JOINING 0", "WAITING 0", "IDLE 0"), device.phases);
        assertFalse(device.messages.contains("nothing to do for now"));
    }

    @Test
    void aStopBeforeItHasJoinedJoinsNothing() throws IOException {
        device.data = spec -> {
            device.agent.stop();
            return null;
        };
        device.run(folder, coordinator);
        assertEquals(0, coordinator.enrolments.size());
        assertNull(JoinedFederation.read(folder));
    }

    @Test
    void samplesThatDoNotFitEndItBeforeAnythingIsEnrolled() throws IOException {
        device.data = spec -> {
            throw new InvalidData("samples of another shape", "Convert them.");
        };
        assertThrows(InvalidData.class, () -> device.run(folder, coordinator));
        assertEquals(0, coordinator.enrolments.size());
        assertNull(JoinedFederation.read(folder));
        assertTrue(device.messages.contains("samples of another shape"));
    }

    @Test
    void theOwnerSeesEveryPhaseAndEveryStep() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        device.run(folder, coordinator);
        assertEquals(List.of("JOINING 0", "ASKING 0", "DOWNLOADING 1", "TRAINING 1", "SENDING 1", "IDLE 0"),
            device.phases);
        assertEquals(IntStream.rangeClosed(1, 10).boxed().toList(), device.steps);
        assertTrue(device.messages.contains("accepted"));
        assertEquals(1, coordinator.results.size());
    }

    @Test
    void aPassThatSumsUpLeavesTheDevicesOwnModelAsItIs() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        device.run(folder, coordinator);
        byte[] before = Files.readAllBytes(folder.resolve("model").resolve("models.json"));
        coordinator.plans.add(GoldenTasks.forwardPlan(0, Map.of("task_id", "task-8")));
        coordinator.plans.add(GoldenTasks.forwardPlan(2, Map.of("task_id", "task-9")));
        device.mostTasks = 2;
        device.run(folder, coordinator);
        assertEquals(List.of("sums/gradient"), List.copyOf(coordinator.results.get(2).tensors().keySet()));
        assertEquals(3, coordinator.results.get(1).tensors().size());
        assertArrayEquals(before, Files.readAllBytes(folder.resolve("model").resolve("models.json")));
        coordinator.plans.add(GoldenTasks.forwardPlan(3, Map.of("task_id", "task-10")));
        device.mostTasks = 1;
        device.run(folder, coordinator);
        assertTrue(coordinator.results.get(3).tensors().isEmpty());
        assertFalse(Arrays.equals(before, Files.readAllBytes(folder.resolve("model").resolve("models.json"))));
    }

    @Test
    void aListenerThatFailsDoesNotCostTheTraining() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        device.afterStep = () -> {
            throw new IllegalStateException("no such view");
        };
        device.run(folder, coordinator);
        assertEquals(1, coordinator.results.size());
    }

    @Test
    void itEndsWhenThereIsNothingToDo() throws IOException {
        device.mostTasks = 0;
        device.run(folder, coordinator);
        assertTrue(coordinator.count("POST /v1/tasks/next") >= 1);
        assertTrue(device.messages.contains("nothing to do for now"));
        coordinator.unreachable = true;
        device.run(folder, coordinator);
        assertTrue(device.messages.contains("nobody is there"));
    }

    @Test
    void aResultThatCouldNotBeSentIsSentTheNextTime() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        device.afterStep = () -> coordinator.unreachable = true;
        device.run(folder, coordinator);
        assertEquals(0, coordinator.results.size());
        assertEquals(10, device.steps.size());
        coordinator.unreachable = false;
        device.run(folder, coordinator);
        assertEquals(1, coordinator.results.size());
        assertEquals(10, device.steps.size());
    }

    @Test
    void samplesAreReadAnewForEveryTask() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        coordinator.plans.add(plan(0, Map.of("task_id", "task-8")));
        device.mostTasks = 2;
        boolean[] changed = new boolean[1];
        device.data = spec -> GoldenTasks.data(changed[0] ? 1 : 0);
        device.afterStep = () -> changed[0] |= device.steps.size() == 10;
        device.run(folder, coordinator);
        assertEquals(2, coordinator.results.size());
        assertNotEquals(coordinator.results.get(0).about().get("result").replaceAll(".*\"loss\":([^,]*),.*", "$1"),
            coordinator.results.get(1).about().get("result").replaceAll(".*\"loss\":([^,]*),.*", "$1"));
    }

    @Test
    void whoDeletesTheirSamplesDuringATaskIsAskedForNoOther() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        coordinator.plans.add(plan(0, Map.of("task_id", "task-8")));
        device.mostTasks = 2;
        device.data = spec -> device.steps.isEmpty() ? GoldenTasks.data(0) : null;
        device.run(folder, coordinator);
        assertEquals(1, coordinator.results.size());
        assertEquals(1, coordinator.count("POST /v1/tasks/next"));
        assertEquals(0, coordinator.refusals.size());
    }

    @Test
    void aTaskThatIsLeftWithoutSamplesIsRefused() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        device.engine = new StoppingEngine(device.engine, 5, () -> device.agent.stop());
        device.run(folder, coordinator);
        device.data = spec -> null;
        device.run(folder, coordinator);
        assertEquals("data", coordinator.refusals.get(0).text("reason"));
    }

    @Test
    void aStopInTheMiddleOfAStepLosesNothingAndChangesNoBit() throws IOException {
        for (int number = 0; number < 3; number++) {
            FakeCoordinator straight = new FakeCoordinator();
            straight.plans.add(plan(number, Map.of()));
            new TestDevice().run(folder.resolve("straight" + number), straight);
            FakeCoordinator stopped = new FakeCoordinator();
            stopped.plans.add(plan(number, Map.of()));
            for (int at : new int[] {1, 3, 4}) {
                TestDevice device = new TestDevice();
                device.engine = new StoppingEngine(device.engine, at, () -> device.agent.stop());
                device.run(folder.resolve("stopped" + number), stopped);
                assertEquals(at - 1, device.steps.size());
                assertTrue(device.messages.contains("stopped"));
            }
            assertEquals(0, stopped.results.size());
            new TestDevice().run(folder.resolve("stopped" + number), stopped);
            assertArrayEquals(trained(straight), trained(stopped));
        }
    }

    @Test
    void aCheckpointOfOtherSamplesIsNotGoneOnWith() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        device.engine = new StoppingEngine(device.engine, 5, () -> device.agent.stop());
        device.run(folder, coordinator);
        assertTrue(Files.exists(folder.resolve("task/checkpoint.safetensors")));
        TestDevice changed = new TestDevice();
        changed.data = spec -> GoldenTasks.data(1);
        changed.run(folder, coordinator);
        assertEquals(1, changed.steps.get(0));
        FakeCoordinator other = new FakeCoordinator();
        other.plans.add(plan(0, Map.of()));
        changed.run(folder.resolve("other"), other);
        assertArrayEquals(trained(other), trained(coordinator));
    }

    @Test
    void withHoursLeftAConditionOfTheOwnerIsWaitedForFromTheCheckpoint() throws IOException {
        coordinator.plans.add(plan(0, Map.of("deadline_seconds", 100_000)));
        device.clock = everyLookCounts();
        Refusal hot = new Refusal(Reason.THERMAL, "the phone is hot");
        device.condition = () -> device.steps.size() >= 4 ? hot : null;
        device.run(folder, coordinator);
        assertEquals(0, coordinator.refusals.size());
        assertEquals(4, device.steps.size());
        assertTrue(Files.exists(folder.resolve("task/checkpoint.safetensors")));
        assertTrue(device.messages.contains("the phone is hot"));
        assertEquals("WAITING 1", device.phases.get(device.phases.size() - 2));
        device.condition = () -> null;
        device.run(folder, coordinator);
        assertEquals(IntStream.rangeClosed(1, 10).boxed().toList(), device.steps);
        assertEquals(1, coordinator.results.size());
    }

    @Test
    void withLittleTimeTheTaskIsRefusedForTheReasonOfTheOwner() throws IOException {
        coordinator.plans.add(plan(0, Map.of("deadline_seconds", 6000)));
        device.clock = everyLookCounts();
        device.condition =
            () -> device.steps.size() >= 4 ? new Refusal(Reason.METERED, "the network is metered") : null;
        device.run(folder, coordinator);
        assertEquals("metered", coordinator.refusals.get(0).text("reason"));
        TaskRecord record = TaskHistory.read(folder).get(0);
        assertEquals("refused", record.outcome());
        assertEquals("the network is metered", record.message());
        assertFalse(Files.exists(folder.resolve("task/plan.json")));
    }

    @Test
    void aFinishedResultWaitsForAnUnmeteredNetworkAndForNothingElse() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        device.condition = () -> device.steps.size() == 10 ? new Refusal(Reason.METERED, "mobile data") : null;
        device.run(folder, coordinator);
        assertEquals(0, coordinator.results.size());
        assertTrue(Files.exists(folder.resolve("task/result.safetensors")));
        assertTrue(device.messages.contains("mobile data"));
        device.condition = () -> new Refusal(Reason.POWER, "not charging");
        device.run(folder, coordinator);
        assertEquals(1, coordinator.results.size());
    }

    /** A clock that goes on by three seconds whenever it is read: conditions are looked at every two. */
    private static DeviceClock everyLookCounts() {
        return new DeviceClock() {
            private double now;

            @Override
            public String boot() {
                return "a boot";
            }

            @Override
            public double seconds() {
                now += 3;
                return now;
            }
        };
    }

    @Test
    void noTaskIsAskedForWhileAConditionDoesNotHold() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        device.condition = () -> new Refusal(Reason.POWER, "not charging");
        device.run(folder, coordinator);
        assertEquals(0, coordinator.count("POST /v1/tasks/next"));
        assertTrue(device.messages.contains("not charging"));
    }

    @Test
    void aDayWithoutTrafficLeftIsRefusedAndTheCoordinatorIsTold() throws IOException {
        coordinator.plans.add(plan(0, Map.of("deadline_seconds", 100_000)));
        device.bytesADay = 8000;
        device.run(folder, coordinator);
        assertEquals("traffic", coordinator.refusals.get(0).text("reason"));
        assertEquals(0, coordinator.results.size());
    }

    @Test
    void metersOfAnAppReachTheCoordinatorAndAFailingOneCostsOnlyItsSection() throws IOException {
        coordinator.plans.add(plan(0, Map.of()));
        device.meters = new Meters() {
            @Override
            public void begin() {}

            @Override
            public Map<String, Object> memory() {
                throw new IllegalStateException("no memory today");
            }

            @Override
            public Map<String, Object> energy() {
                return TelemetrySections.energy(
                    Double.NaN, "android battery counter", "device", "measured", null, null, false);
            }

            @Override
            public Map<String, Object> thermal() {
                return TelemetrySections.thermal(null, null, null, "none", "light");
            }
        };
        device.run(folder, coordinator);
        var telemetry = JsonReader.object(coordinator.results.get(0).about().get("result")).object("telemetry");
        assertNull(telemetry.objectOrNull("energy"));
        assertEquals("light", telemetry.object("thermal").text("end_status"));
        assertNotNull(telemetry.object("memory").text("source"));
        assertEquals("estimated", telemetry.object("transfer").text("provenance"));
    }
}
