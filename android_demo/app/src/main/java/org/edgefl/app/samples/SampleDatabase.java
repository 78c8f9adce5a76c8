package org.edgefl.app.samples;

import android.content.Context;
import android.database.Cursor;
import android.database.sqlite.SQLiteDatabase;
import android.database.sqlite.SQLiteException;
import android.database.sqlite.SQLiteFullException;
import android.database.sqlite.SQLiteOpenHelper;
import android.database.sqlite.SQLiteStatement;
import org.edgefl.EdgeFLError;
import org.edgefl.data.InvalidData;

/**
 * The file of all samples: {@code samples.db} in the app's private storage.
 *
 * <p>SQLite keeps what was added whatever kills the process, and an import is added whole or not at all.
 */
final class SampleDatabase extends SQLiteOpenHelper {
    private static final int VERSION = 1;
    private static final int MOST_SAMPLES = 200_000;

    SampleDatabase(Context context) {
        super(context, "samples.db", null, VERSION);
    }

    @Override
    public void onCreate(SQLiteDatabase database) {
        // AUTOINCREMENT: the number of a deleted sample is never given again, because it decides what is held out.
        database.execSQL("CREATE TABLE sample (id INTEGER PRIMARY KEY AUTOINCREMENT, form TEXT NOT NULL,"
            + " label INTEGER NOT NULL, source TEXT NOT NULL, added INTEGER NOT NULL, raw BLOB NOT NULL)");
        database.execSQL("CREATE INDEX sample_by_label ON sample (form, label, id)");
    }

    @Override
    public void onConfigure(SQLiteDatabase database) {
        // Deleted samples are overwritten, not only unlinked: an owner who deletes them means it.
        database.rawQuery("PRAGMA secure_delete = ON", null).close();
    }

    @Override
    public void onUpgrade(SQLiteDatabase database, int from, int to) {
        throw new IllegalStateException("there is no version " + from + " of the samples' file");
    }

    /** The number of samples of a form. */
    int count(String form) {
        try (Cursor rows = getReadableDatabase().rawQuery(
                "SELECT COUNT(*) FROM sample WHERE form = ?", new String[] {form})) {
            rows.moveToNext();
            return rows.getInt(0);
        }
    }

    /** Adds samples of a form, within a transaction. */
    final class Rows implements AutoCloseable {
        private final SQLiteStatement insert;
        private int left;

        private Rows(SQLiteDatabase writable, String form) {
            left = MOST_SAMPLES - count(form);
            insert = writable.compileStatement(
                "INSERT INTO sample (form, added, label, source, raw) VALUES (?, ?, ?, ?, ?)");
            insert.bindString(1, form);
            insert.bindLong(2, System.currentTimeMillis());
        }

        long add(int label, String source, byte[] raw) {
            if (left-- <= 0) {
                throw new InvalidData("there would be more than " + MOST_SAMPLES + " samples", "Delete some of them.");
            }
            insert.bindLong(3, label);
            insert.bindString(4, source);
            insert.bindBlob(5, raw);
            return insert.executeInsert();
        }

        @Override
        public void close() {
            insert.close();
        }
    }

    /** Work in a transaction: all of it stays, or nothing. */
    interface Storing<T, E extends Exception> {
        /** Add samples. */
        T in(Rows rows) throws E;
    }

    /** Add samples of a form, all of them or none. */
    <T, E extends Exception> T storing(String form, Storing<T, E> work) throws E {
        SQLiteDatabase writable = getWritableDatabase();
        writable.beginTransaction();
        try (Rows rows = new Rows(writable, form)) {
            T result = work.in(rows);
            writable.setTransactionSuccessful();
            return result;
        } catch (SQLiteFullException full) {
            throw new EdgeFLError("there is no room for samples on this phone", "Free some storage.", full);
        } catch (SQLiteException failed) {
            throw new EdgeFLError("the samples cannot be stored: " + failed.getMessage(), "Try again.", failed);
        } finally {
            writable.endTransaction();
        }
    }
}
