package org.edgefl.apk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class PinsTest {
    private static final String DIGEST_OF_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    @TempDir
    private Path folder;

    private Pins pins(String text) throws IOException {
        return Pins.read(Files.writeString(folder.resolve("pins.sha256"), text));
    }

    private Path file(String text) throws IOException {
        return Files.writeString(folder.resolve("tool.jar"), text);
    }

    @Test
    void thePinnedFileIsTaken() throws IOException {
        Path tool = file("abc");
        assertEquals(tool, pins("# a tool\n\n" + DIGEST_OF_ABC + "  tool.jar\n").check(tool));
    }

    @Test
    void anotherFileStopsTheBuildAndIsNamedWithBothDigests() throws IOException {
        Path tool = file("abd");
        Pins pins = pins(DIGEST_OF_ABC + "  tool.jar\n");
        String message = assertThrows(BuildProblem.class, () -> pins.check(tool)).getMessage();
        assertTrue(message.contains("WRONG FILE: " + tool), message);
        assertTrue(message.contains(DIGEST_OF_ABC), message);
        assertTrue(message.contains(Pins.sha256(tool)), message);
    }

    @Test
    void aFileWithoutAPinStopsTheBuild() throws IOException {
        Path tool = file("abc");
        Pins pins = pins(DIGEST_OF_ABC + "  other.jar\n");
        String message = assertThrows(BuildProblem.class, () -> pins.check(tool)).getMessage();
        assertTrue(message.contains("no pin for tool.jar"), message);
    }

    @Test
    void aLineThatIsNotAPinStopsTheBuild() {
        assertThrows(BuildProblem.class, () -> pins("abc  tool.jar\n"));
        assertThrows(BuildProblem.class, () -> pins(DIGEST_OF_ABC + " tool.jar\n"));
    }

    @Test
    void theToolsOfThisBuildAreThePinnedOnes() throws IOException {
        Tools tools = new Tools(Pins.read(Path.of("pins.sha256")));
        for (String member : new String[] {Tools.D8, Tools.APKSIG, Tools.AAPT2}) {
            assertTrue(Files.isRegularFile(tools.jar(member)));
        }
        assertThrows(BuildProblem.class, () -> new Tools(pins("")).jar(Tools.D8));
    }
}
