package org.edgefl.app.phone;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.function.IntFunction;
import org.junit.Test;

/** An APK without the engine lacks its classes, too: nothing may fail but the engine itself. */
public final class MissingEngineTest {
    /** Loads the app anew, in a world without onnxruntime. */
    private static final class WithoutEngine extends ClassLoader {
        WithoutEngine() {
            super(MissingEngineTest.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (name.startsWith("ai.onnxruntime.")) {
                throw new ClassNotFoundException(name);
            }
            if (!name.startsWith("org.edgefl.")) {
                return super.loadClass(name, resolve);
            }
            Class<?> known = findLoadedClass(name);
            return known == null ? defined(name) : known;
        }

        private Class<?> defined(String name) throws ClassNotFoundException {
            try (InputStream in = getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                in.transferTo(bytes);
                return defineClass(name, bytes.toByteArray(), 0, bytes.size());
            } catch (IOException error) {
                throw new ClassNotFoundException(name, error);
            }
        }
    }

    @Test
    public void missingClassesAreFoundOutAndNothingFails() throws Exception {
        ClassLoader loader = new WithoutEngine();
        assertThrows(ClassNotFoundException.class, () -> loader.loadClass("ai.onnxruntime.OrtEnvironment"));
        Class<?> engine = loader.loadClass(TrainingEngine.class.getName());
        Method maker = engine.getDeclaredMethod("onnxruntime");
        Method loads = engine.getDeclaredMethod("loads", IntFunction.class);
        maker.setAccessible(true);
        loads.setAccessible(true);
        assertEquals(false, loads.invoke(null, maker.invoke(null)));
    }
}
