package org.edgefl.app.samples;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.edgefl.data.InvalidData;

/**
 * Reads samples of a CSV file, a row each: numbers, and the label in the column {@code label} or the last one.
 *
 * <p>A first row that has no numbers names the columns. Cells are separated by commas, semicolons or tabs, by whichever
 * the first row has. A row that is not right ends the reading with an error that names its line.
 */
final class CsvSamples {
    private static final int CHARACTERS_OF_CELL = 32;
    private static final String FIX = "Correct the file; nothing of it was added.";

    /** Takes the samples, in their order. */
    interface Receiver {
        /** One sample. */
        void take(int label, byte[] raw);
    }

    private final SampleForm form;
    private final BufferedReader in;
    private final int mostCharacters;
    private int line;
    private char separator;
    private int labelColumn;

    private CsvSamples(SampleForm form, InputStream file) {
        this.form = form;
        this.in = new BufferedReader(new InputStreamReader(file, StandardCharsets.UTF_8));
        this.mostCharacters = Math.max(4096, Math.multiplyExact(CHARACTERS_OF_CELL, form.numbers() + 1));
        this.labelColumn = form.numbers();
    }

    /** Read all rows; return how many there were. */
    static int read(SampleForm form, InputStream file, Receiver receiver) throws IOException {
        return new CsvSamples(form, file).read(receiver);
    }

    private int read(Receiver receiver) throws IOException {
        int count = 0;
        boolean first = true;
        for (String row = nextLine(); row != null; row = nextLine()) {
            if (row.trim().isEmpty()) {
                continue;
            }
            if (first) {
                first = false;
                separator = row.indexOf(',') >= 0 ? ',' : row.indexOf(';') >= 0 ? ';' : '\t';
                if (readHeader(cells(row))) {
                    continue;
                }
            }
            take(cells(row), receiver);
            count++;
        }
        if (count == 0) {
            throw new InvalidData("the file has no rows", "Choose a CSV file with a row per sample.");
        }
        return count;
    }

    /** Return the next line, which may not be longer than any right one is; null at the end. */
    private String nextLine() throws IOException {
        StringBuilder text = new StringBuilder();
        int next = in.read();
        if (next < 0) {
            return null;
        }
        line++;
        for (; next >= 0 && next != '\n'; next = in.read()) {
            text.append((char) next);
            if (text.length() > mostCharacters) {
                throw wrong("it is longer than a sample of " + form.numbers() + " numbers can be");
            }
        }
        boolean marked = line == 1 && text.length() > 0 && text.charAt(0) == '\ufeff';
        return marked ? text.substring(1) : text.toString();
    }

    private String[] cells(String row) {
        String[] found = row.split(String.valueOf(separator), -1);
        for (int i = 0; i < found.length; i++) {
            String cell = found[i].trim();
            boolean quoted = cell.length() >= 2 && cell.startsWith("\"") && cell.endsWith("\"");
            found[i] = quoted ? cell.substring(1, cell.length() - 1).trim() : cell;
        }
        return found;
    }

    /** Return whether a row names the columns: none of its cells is a number. */
    private boolean readHeader(String[] cells) {
        int label = -1;
        for (int i = 0; i < cells.length; i++) {
            if (!Double.isNaN(number(cells[i]))) {
                return false;
            }
            label = cells[i].equalsIgnoreCase("label") ? i : label;
        }
        labelColumn = label < 0 ? cells.length - 1 : label;
        return true;
    }

    private void take(String[] cells, Receiver receiver) {
        if (cells.length != form.numbers() + 1) {
            throw wrong("it has " + cells.length + " cells, and a sample has " + form.numbers() + " and a label");
        }
        double label = number(cells[labelColumn]);
        if (label != Math.rint(label) || label < 0 || label >= form.classes()) {
            throw wrong("its label is '" + cells[labelColumn] + "', and labels are from 0 to " + (form.classes() - 1));
        }
        ByteBuffer raw = ByteBuffer.allocate((int) form.bytes()).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < cells.length; i++) {
            if (i != labelColumn) {
                double number = number(cells[i]);
                if (!form.holds(number)) {
                    throw wrong("column " + (i + 1) + " has '" + cells[i] + "', which is not a number of the type "
                        + form.dtype());
                }
                form.put(raw, number);
            }
        }
        receiver.take((int) label, raw.array());
    }

    /** Return the number of a cell, or NaN. */
    private static double number(String cell) {
        try {
            return Double.parseDouble(cell);
        } catch (NumberFormatException notOne) {
            return Double.NaN;
        }
    }

    private InvalidData wrong(String problem) {
        return new InvalidData("line " + line + " of the file: " + problem, FIX);
    }
}
