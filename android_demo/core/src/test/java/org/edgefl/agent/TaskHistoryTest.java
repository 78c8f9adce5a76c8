package org.edgefl.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.golden.GoldenTasks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How tasks ended, for the device's owner: each once, whatever was cut off. */
class TaskHistoryTest {
    @TempDir
    private Path folder;
    private final FakeCoordinator coordinator = new FakeCoordinator();
    private final TestDevice device = new TestDevice();

    private static TaskRecord record(String id) {
        return new TaskRecord(
            id, 3, false, "sgd", "refused", "\"too\" warm,\n", 1_700_000_000_000L, 0, 0, Double.NaN, null, null);
    }

    @Test
    void anAcceptedTaskIsThereWithWhatItCost() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(3, Map.of()));
        device.run(folder, coordinator);
        TaskRecord record = TaskHistory.read(folder).get(0);
        assertEquals(1, TaskHistory.read(folder).size());
        assertEquals("accepted", record.outcome());
        assertEquals(5, record.round());
        assertTrue(record.personal());
        assertEquals(31, record.samples());
        assertEquals(10, record.steps());
        assertEquals(0.5086, record.loss(), 1e-3);
        assertEquals(1.0, record.accuracy());
        assertTrue(record.telemetry().object("latency").number("round_seconds") > 0);
    }

    /** The process is killed after the receipt and before the task is forgotten: the task is still on the disk. */
    @Test
    void aTaskThatEndedTwiceIsThereOnceAndAsItEndedFirst() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        Map<String, byte[]> task = new HashMap<>();
        device.afterStep = () -> coordinator.unreachable = true;
        device.run(folder, coordinator);
        for (String name : new String[] {"plan.json", "report.json", "result.safetensors"}) {
            task.put(name, Files.readAllBytes(folder.resolve("task").resolve(name)));
        }
        coordinator.unreachable = false;
        device.run(folder, coordinator);
        assertFalse(Files.exists(folder.resolve("task/plan.json")));
        for (Map.Entry<String, byte[]> file : task.entrySet()) {
            Files.write(folder.resolve("task").resolve(file.getKey()), file.getValue());
        }
        coordinator.outcome = "already have it";
        device.run(folder, coordinator);
        assertEquals(2, coordinator.results.size());
        assertEquals(List.of("accepted"), TaskHistory.read(folder).stream().map(TaskRecord::outcome).toList());
    }

    @Test
    void aRejectedResultIsToldAndThereOnce() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        coordinator.resultStatus = 422;
        device.run(folder, coordinator);
        TaskRecord record = TaskHistory.read(folder).get(0);
        assertEquals(1, TaskHistory.read(folder).size());
        assertEquals("rejected", record.outcome());
        assertEquals("this update is not wanted", record.message());
        assertEquals(10, record.steps());
        assertEquals("broken", coordinator.refusals.get(0).text("reason"));
    }

    @Test
    void aStrangersTextIsOneLineThatHidesNothingAndDoesNotFillTheHistory() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        coordinator.resultStatus = 409;
        coordinator.resultProblem = "bad\n\u202eTap here\u001b[2J " + "x".repeat(60_000);
        device.run(folder, coordinator);
        String message = TaskHistory.read(folder).get(0).message();
        assertTrue(message.startsWith("bad  Tap here [2J xxx"), message);
        assertEquals(501, message.length());
        assertTrue(device.messages.stream().allMatch(shown -> shown.length() <= 501 && !shown.contains("\n")));
    }

    @Test
    void aPlanWhoseRuleIsNotANameIsNotTaken() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(0, Map.of("rule", Map.of("name", "x".repeat(60_000)))));
        device.run(folder, coordinator);
        assertEquals(List.of(), TaskHistory.read(folder));
    }

    /** Put something in the way of files of the home, so that they cannot be written: as on a full disk. */
    private void block(String... names) {
        for (String name : names) {
            assertTrue(folder.resolve(name + ".new").resolve("in the way").toFile().mkdirs());
        }
    }

    /** A disk that fails from the poll until the refusal is told. */
    private void blockDuringTheTask(String... names) {
        coordinator.whenPolled = () -> {
            block(names);
            coordinator.whenPolled = () -> { };
        };
        coordinator.whenRefused = () -> {
            for (String name : names) {
                assertTrue(folder.resolve(name + ".new").resolve("in the way").toFile().delete());
            }
        };
    }

    @Test
    void aHistoryThatCannotBeWrittenDoesNotKeepATaskFromEnding() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        block("history.jsonl");
        device.run(folder, coordinator);
        assertEquals(1, coordinator.results.size());
        assertFalse(Files.exists(folder.resolve("task/plan.json")));
    }

    @Test
    void aDiskThatFailsIsToldToTheCoordinator() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        blockDuringTheTask("task/plan.json");
        device.run(folder, coordinator);
        assertEquals("storage", coordinator.refusals.get(0).text("reason"));
        assertEquals("refused", TaskHistory.read(folder).get(0).outcome());
    }

    @Test
    void aRefusalThatCannotBeWrittenIsToldAllTheSame() throws IOException {
        coordinator.plans.add(GoldenTasks.plan(0, Map.of()));
        blockDuringTheTask("task/refusal.json", "task/result.safetensors");
        device.run(folder, coordinator);
        assertEquals("storage", coordinator.refusals.get(0).text("reason"));
        assertEquals(10, TaskHistory.read(folder).get(0).steps());
    }

    @Test
    void theNewestAreKeptAndADamagedLineCostsOnlyItself() throws IOException {
        for (int i = 0; i < TaskHistory.MOST + 3; i++) {
            TaskHistory.add(folder, record("task-" + i));
        }
        List<TaskRecord> found = TaskHistory.read(folder);
        assertEquals(TaskHistory.MOST, found.size());
        assertEquals("task-502", found.get(0).taskId());
        assertEquals("task-3", found.get(found.size() - 1).taskId());
        assertEquals(record("task-502"), found.get(0));
        Files.write(folder.resolve("history.jsonl"), "{\"task_id\":\n".getBytes(StandardCharsets.UTF_8),
            StandardOpenOption.APPEND);
        TaskHistory.add(folder, record("task-9"));
        assertEquals(found, TaskHistory.read(folder));
    }

    @Test
    void whoNeverHadATaskHasNoHistory() {
        assertEquals(List.of(), TaskHistory.read(folder));
        assertNull(JoinedFederation.read(folder));
    }
}
