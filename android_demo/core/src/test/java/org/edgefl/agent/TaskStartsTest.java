package org.edgefl.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import org.edgefl.values.Refusal;
import org.edgefl.values.TaskRefused;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A task that ends its process again and again is given back. */
class TaskStartsTest {
    @TempDir
    Path folder;

    private static void noteTenTimes(AgentHome home) throws IOException {
        for (int i = 0; i < TaskStarts.MOST; i++) {
            TaskStarts.note(home);
        }
    }

    private static void checkpoint(AgentHome home, long millis) throws IOException {
        Path file = home.taskFile("checkpoint.safetensors");
        Files.write(file, new byte[] {1});
        Files.setLastModifiedTime(file, FileTime.fromMillis(millis));
    }

    @Test
    void aTaskThatNeverGetsAnyFurtherIsRefusedForLackOfMemory() throws IOException {
        try (AgentHome home = new AgentHome(folder)) {
            noteTenTimes(home);
            TaskRefused refused = assertThrows(TaskRefused.class, () -> TaskStarts.note(home));
            assertEquals(Refusal.Reason.MEMORY, refused.refusal().reason());
        }
    }

    @Test
    void aTaskThatGetsFurtherMayBeEndedAsOftenAsTheSystemLikes() throws IOException {
        try (AgentHome home = new AgentHome(folder)) {
            for (int round = 1; round <= 5; round++) {
                checkpoint(home, 1000L * round);
                noteTenTimes(home);
            }
            assertThrows(TaskRefused.class, () -> TaskStarts.note(home));
        }
    }

    @Test
    void theNextTaskBeginsToCountAnew() throws IOException {
        try (AgentHome home = new AgentHome(folder)) {
            noteTenTimes(home);
            home.clearTask();
            assertFalse(Files.exists(home.taskFile(TaskStarts.FILE)));
            noteTenTimes(home);
        }
    }
}
