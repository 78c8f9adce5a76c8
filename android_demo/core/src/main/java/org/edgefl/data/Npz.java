package org.edgefl.data;

import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import org.edgefl.wire.Packing;

/** The arrays of samples in an {@code .npz} file, as {@code numpy.savez} writes it. */
public final class Npz {
    private static final long MOST_BYTES = 2L << 30;
    private static final Set<String> NAMES = Set.of("x", "y");

    private Npz() {}

    /** Read the arrays {@code x} and {@code y}, as far as they are there. Pickled objects are never read. */
    public static Map<String, NumpyArray> read(InputStream file) throws IOException {
        return read(file, MOST_BYTES);
    }

    /** Read the arrays, which together may have so many bytes: a small file can unpack to any size. */
    public static Map<String, NumpyArray> read(InputStream file, long mostBytes) throws IOException {
        Map<String, NumpyArray> found = new HashMap<>();
        long left = mostBytes;
        try (ZipInputStream zip = new ZipInputStream(file)) {
            for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
                String name = entry.getName().replaceFirst("\\.npy$", "");
                if (NAMES.contains(name) && !name.equals(entry.getName())) {
                    byte[] bytes = Packing.readAll(zip, left);
                    left -= bytes.length;
                    found.put(name, NumpyArray.parse(bytes));
                }
            }
        } catch (IllegalArgumentException notUtf8) {
            throw new InvalidData("the file is not a zip file of numpy", "Save it with numpy.savez.");
        }
        return found;
    }
}
