package org.edgefl.app.samples;

import android.content.Context;
import android.database.Cursor;
import android.database.sqlite.SQLiteDatabase;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.edgefl.data.InvalidData;
import org.edgefl.data.LocalData;
import org.edgefl.data.Npz;
import org.edgefl.data.NumpyArray;
import org.edgefl.values.SampleSpec;
import org.edgefl.wire.ByteRange;

/**
 * Samples in a database of the app's private storage.
 *
 * <p>Every sample belongs to a form: type, shape and classes. Those of another form than the current federation's are
 * kept, but neither shown nor used, until a federation asks for that form again. {@link #deleteAll} takes them too.
 */
public final class SqliteSampleStore implements SampleStore, AutoCloseable {
    /** A row of SQLite on Android must fit into a cursor's window. */
    static final int MOST_BYTES = 1 << 20;

    /** A file is in memory about three times while it is read, and other work needs some, too. */
    private static final int MEMORY_SHARE = 6;

    private final SampleDatabase database;
    private final Supplier<SampleSpec> current;

    /** The samples of an app; {@code current} says what a sample of the joined federation is, or null without one. */
    public SqliteSampleStore(Context context, Supplier<SampleSpec> current) {
        this.database = new SampleDatabase(context);
        this.current = current;
    }

    @Override
    public long add(SampleSpec spec, int label, String source, byte[] raw) {
        SampleForm form = checked(spec);
        if (raw.length != form.bytes()) {
            throw new InvalidData("a sample has " + raw.length + " bytes, and the federation's has " + form.bytes(),
                "Convert the samples, or join another federation.");
        }
        form.checkLabel(label);
        return database.storing(form.key(), rows -> rows.add(label, source, raw));
    }

    @Override
    public long addPicture(SampleSpec spec, int label, String source, int[] pixels, int width, int height) {
        checked(spec);
        return add(spec, label, source, PictureSamples.raw(spec, source, pixels, width, height));
    }

    @Override
    public int importCsv(SampleSpec spec, InputStream file) throws IOException {
        SampleForm form = checked(spec);
        return database.storing(
            form.key(), rows -> CsvSamples.read(form, file, (label, raw) -> rows.add(label, "csv", raw)));
    }

    @Override
    public int importNpz(SampleSpec spec, InputStream file) throws IOException {
        SampleForm form = checked(spec);
        Map<String, NumpyArray> arrays;
        try {
            arrays = Npz.read(file, Runtime.getRuntime().maxMemory() / MEMORY_SHARE);
            LocalData.of(arrays, spec, 0, 0);
        } catch (OutOfMemoryError tooLarge) {
            throw new InvalidData("the file is larger than this phone's memory", "Import it in smaller parts.");
        }
        NumpyArray x = arrays.get("x");
        NumpyArray y = arrays.get("y");
        return database.storing(form.key(), rows -> {
            int count = (int) x.shape()[0];
            for (int sample = 0; sample < count; sample++) {
                ByteBuffer raw = ByteBuffer.allocate((int) form.bytes()).order(ByteOrder.LITTLE_ENDIAN);
                for (int i = sample * form.numbers(); i < (sample + 1) * form.numbers(); i++) {
                    double number = x.isFloat() ? x.asFloat(i) : x.asLong(i);
                    if (!form.holds(number)) {
                        throw new InvalidData("sample " + (sample + 1) + " has " + number
                            + ", which is not a number of the type " + form.dtype(), "Correct the file; nothing of it"
                            + " was added.");
                    }
                    form.put(raw, number);
                }
                rows.add((int) y.asLong(sample), "npz", raw.array());
            }
            return count;
        });
    }

    @Override
    public int[] countByClass(SampleSpec spec) {
        int[] found = new int[spec.classes()];
        try (Cursor rows = readable().rawQuery(
                "SELECT label, COUNT(*) FROM sample WHERE form = ? GROUP BY label", args(SampleForm.of(spec)))) {
            while (rows.moveToNext()) {
                found[rows.getInt(0)] = rows.getInt(1);
            }
        }
        return found;
    }

    @Override
    public List<Sample> page(int label, int from, int most) {
        SampleSpec spec = current.get();
        List<Sample> found = new ArrayList<>();
        if (spec == null) {
            return found;
        }
        // A label below 0 means all: every label is at least 0, and at most what an int can be.
        int least = Math.max(label, 0);
        int largest = label < 0 ? Integer.MAX_VALUE : label;
        try (Cursor rows = readable().rawQuery("SELECT id, label, source, added, raw FROM sample WHERE form = ?"
                + " AND label BETWEEN ? AND ? ORDER BY id DESC LIMIT ? OFFSET ?",
                args(SampleForm.of(spec), least, largest, most, from))) {
            while (rows.moveToNext()) {
                found.add(new Sample(
                    rows.getLong(0), rows.getInt(1), rows.getString(2), rows.getLong(3), rows.getBlob(4)));
            }
        }
        return found;
    }

    @Override
    public void delete(long id) {
        database.getWritableDatabase().delete("sample", "id = ?", new String[] {Long.toString(id)});
    }

    @Override
    public void deleteAll() {
        database.getWritableDatabase().delete("sample", null, null);
    }

    @Override
    public LocalData data(SampleSpec spec) {
        SampleForm form = checked(spec);
        int count = database.count(form.key());
        if (count == 0) {
            throw new InvalidData("there are no samples on this phone", "Draw or import some under My data.");
        }
        if (count * form.bytes() > Runtime.getRuntime().maxMemory() / 2) {
            throw new InvalidData(count + " samples do not fit into this phone's memory", "Delete some of them.");
        }
        ByteBuffer raw = ByteBuffer.allocate((int) (count * form.bytes())).order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer labels = ByteBuffer.allocate(8 * count).order(ByteOrder.LITTLE_ENDIAN);
        long[] ids = new long[count];
        int number = 0;
        try (Cursor rows = readable().rawQuery("SELECT id, label, raw FROM sample WHERE form = ? ORDER BY id LIMIT ?",
                args(form, count))) {
            while (rows.moveToNext()) {
                ids[number++] = rows.getLong(0);
                labels.putLong(rows.getLong(1));
                raw.put(rows.getBlob(2));
            }
        }
        // Samples may have been deleted since they were counted.
        long[] shape = new long[form.shape().length + 1];
        shape[0] = number;
        System.arraycopy(form.shape(), 0, shape, 1, form.shape().length);
        return new LocalData(new NumpyArray(form.dtype(), shape, ByteRange.written(raw)),
            new NumpyArray("int64", new long[] {number}, ByteRange.written(labels)), spec, HeldOut.of(Arrays.copyOf(ids, number)));
    }

    /** Close the file. The system does that too when the process ends. */
    @Override
    public void close() {
        database.close();
    }

    private static SampleForm checked(SampleSpec spec) {
        SampleForm form = SampleForm.of(spec);
        if (form.bytes() > MOST_BYTES) {
            throw new InvalidData("a sample of the federation has " + form.bytes() + " bytes, and this app keeps at most "
                + MOST_BYTES, "Take part with `edgefl join` on a computer.");
        }
        return form;
    }

    private SQLiteDatabase readable() {
        return database.getReadableDatabase();
    }

    private static String[] args(SampleForm form, int... numbers) {
        String[] made = new String[numbers.length + 1];
        made[0] = form.key();
        for (int i = 0; i < numbers.length; i++) {
            made[i + 1] = Integer.toString(numbers[i]);
        }
        return made;
    }

}
