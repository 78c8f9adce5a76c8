package org.edgefl.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Map;
import java.util.SortedMap;
import org.edgefl.files.AtomicFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A model is in memory once: reading its body takes its size, and writing it takes next to nothing. */
class MemoryOfBodiesTest {
    private static final int ENTRIES = 4 << 20;
    private static final long BYTES = 4L * ENTRIES;
    private static final long LITTLE = 1 << 20;

    /** Bytes of all tensors now: they lie outside of the heap. */
    private static long direct() {
        for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            if (pool.getName().equals("direct")) {
                return pool.getMemoryUsed();
            }
        }
        throw new IllegalStateException("this JVM does not say");
    }

    @Test
    void weightsAreReadAndWrittenWithoutASecondCopy(@TempDir Path folder) throws IOException {
        Tensor weights = Tensor.zeros(DType.F32, ENTRIES);
        weights.floats().put(7, 0.5f);
        Path file = folder.resolve("weights");
        long before = direct();
        AtomicFile.write(file, out -> BodyWriter.write(Body.weights(Map.of("w", weights)), out));
        assertTrue(direct() - before < LITTLE, "written in pieces");
        before = direct();
        SortedMap<String, Tensor> read = BodyReader.read(file).dense();
        long taken = direct() - before;
        assertTrue(taken >= BYTES && taken < BYTES + LITTLE, "read once, not " + taken + " bytes");
        assertEquals(0.5f, read.get("w").floats().get(7));
        assertEquals(0f, weights.floats().get(0));
    }
}
