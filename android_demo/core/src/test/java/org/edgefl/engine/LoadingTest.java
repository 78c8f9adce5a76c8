package org.edgefl.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import org.junit.jupiter.api.Test;

/** Graphs are loaded on another thread, whose failures are those of the caller. */
class LoadingTest {
    @Test
    void anErrorWhileAGraphIsLoadedReachesTheCallerAndNotTheProcess() {
        OutOfMemoryError full = new OutOfMemoryError("Java heap space");
        assertSame(full, assertThrows(OutOfMemoryError.class, () -> OnnxEngine.onThreadOfItsOwn(() -> {
            throw full;
        })));
        assertThrows(IOException.class, () -> OnnxEngine.onThreadOfItsOwn(() -> {
            throw new IOException("the file is gone");
        }));
        assertThrows(InvalidGraph.class, () -> OnnxEngine.onThreadOfItsOwn(() -> {
            throw new IllegalStateException("the engine is confused");
        }));
    }

    @Test
    void anInterruptIsKeptAndDoesNotEndTheLoading() throws Exception {
        Thread.currentThread().interrupt();
        assertNotEquals(Thread.currentThread(), OnnxEngine.onThreadOfItsOwn(Thread::currentThread));
        assertTrue(Thread.interrupted());
    }

    @Test
    void aFileOfNothingButFieldsDoesNotFillTheMemory() {
        InvalidGraph error = assertThrows(InvalidGraph.class, () -> GraphCheck.check(new byte[4_000_000]));
        assertEquals("the graph cannot be run: a message of it has more than 1000000 fields", error.getMessage());
    }
}
