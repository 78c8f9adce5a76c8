package org.edgefl.data;

import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import org.edgefl.wire.Packing;

/** Arrays of an {@code .npz} file, as {@code numpy.savez} writes it. */
public final class Npz {
    private static final long MOST_BYTES = 2L << 30;

    private Npz() {}

    /** Read all arrays by name. Pickled objects are never read. */
    public static Map<String, NumpyArray> read(InputStream file) throws IOException {
        Map<String, NumpyArray> found = new HashMap<>();
        try (ZipInputStream zip = new ZipInputStream(file)) {
            for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
                if (entry.getName().endsWith(".npy")) {
                    String name = entry.getName().substring(0, entry.getName().length() - 4);
                    found.put(name, NumpyArray.parse(Packing.readAll(zip, MOST_BYTES)));
                }
            }
        }
        return found;
    }
}
