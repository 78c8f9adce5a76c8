package org.edgefl.app.screens;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.edgefl.app.samples.PictureSamples;
import org.edgefl.app.samples.SampleStore;
import org.edgefl.data.InvalidData;
import org.edgefl.data.LocalData;
import org.edgefl.data.Npz;
import org.edgefl.data.NumpyArray;
import org.edgefl.values.SampleSpec;

/** Samples in memory, the newest first. */
final class FakeSamples implements SampleStore {
    final List<Sample> all = new ArrayList<>();
    private long next = 1;

    @Override
    public long add(SampleSpec spec, int label, String source, byte[] raw) {
        all.add(0, new Sample(next, label, source, 1_790_000_000_000L + next * 60_000, raw));
        return next++;
    }

    @Override
    public long addPicture(SampleSpec spec, int label, String source, int[] pixels, int width, int height) {
        return add(spec, label, source, PictureSamples.raw(spec, source, pixels, width, height));
    }

    @Override
    public int importCsv(SampleSpec spec, InputStream file) throws IOException {
        int count = 0;
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(file, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] cells = line.split(",");
                if (cells.length != spec.shape()[0] + 1) {
                    throw new InvalidData("a row has " + cells.length + " cells",
                        "Give every row all numbers and a label.");
                }
                ByteBuffer raw = ByteBuffer.allocate(4 * cells.length - 4).order(ByteOrder.LITTLE_ENDIAN);
                for (int i = 0; i < cells.length - 1; i++) {
                    raw.putFloat(Float.parseFloat(cells[i]));
                }
                add(spec, Integer.parseInt(cells[cells.length - 1]), "csv", raw.array());
                count++;
            }
        }
        return count;
    }

    @Override
    public int importNpz(SampleSpec spec, InputStream file) throws IOException {
        NumpyArray labels = Npz.read(file).get("y");
        for (int i = 0; i < labels.shape()[0]; i++) {
            add(spec, (int) labels.asLong(i), "npz", new byte[0]);
        }
        return (int) labels.shape()[0];
    }

    @Override
    public int[] countByClass(SampleSpec spec) {
        int[] counts = new int[spec.classes()];
        all.forEach(sample -> counts[sample.label()]++);
        return counts;
    }

    @Override
    public List<Sample> page(int label, int from, int most) {
        List<Sample> found = new ArrayList<>(all);
        found.removeIf(sample -> label >= 0 && sample.label() != label);
        int first = Math.min(from, found.size());
        return found.subList(first, Math.min(first + most, found.size()));
    }

    @Override
    public void delete(long id) {
        all.removeIf(sample -> sample.id() == id);
    }

    @Override
    public void deleteAll() {
        all.clear();
    }

    @Override
    public LocalData data(SampleSpec spec) {
        throw new InvalidData("there are no samples", "Add some.");
    }
}
