package org.edgefl.app.samples;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.edgefl.data.InvalidData;
import org.junit.Test;

public final class CsvSamplesTest {
    private final List<byte[]> samples = new ArrayList<>();
    private final List<Integer> labels = new ArrayList<>();

    private int read(String text) throws IOException {
        byte[] file = text.getBytes(StandardCharsets.UTF_8);
        SampleForm form = SampleForm.of(Specs.of("[3]", "\"uint8\"", "null", "null"));
        return CsvSamples.read(form, new ByteArrayInputStream(file), (label, raw) -> {
            labels.add(label);
            samples.add(raw);
        });
    }

    private String problem(String text) {
        return assertThrows(InvalidData.class, () -> read(text)).getMessage();
    }

    @Test
    public void labelIsTheLastColumnOfFileWithoutHeader() throws IOException {
        assertEquals(2, read("1,2,3,4\r\n5,6,255,9\r\n"));
        assertEquals(List.of(4, 9), labels);
        assertArrayEquals(new byte[] {5, 6, (byte) 255}, samples.get(1));
    }

    @Test
    public void headerSaysWhereTheLabelIs() throws IOException {
        assertEquals(1, read("\ufeffa;\"Label\";b;c\n\n1;4;2;3\n"));
        assertEquals(List.of(4), labels);
        assertArrayEquals(new byte[] {1, 2, 3}, samples.get(0));
    }

    @Test
    public void headerWithoutLabelMeansTheLastColumn() throws IOException {
        assertEquals(1, read("a,b,c,d\n1,2,3,4"));
        assertEquals(List.of(4), labels);
    }

    @Test
    public void errorsNameTheirLine() {
        assertTrue(problem("1,2,3,4\n1,2,3\n").startsWith("line 2 of the file: it has 3 cells"));
        assertTrue(problem("a,b,c,label\n1,2,3,10\n").startsWith("line 2 of the file: its label is '10'"));
        assertTrue(problem("1,2,3,4\n\n1,256,3,4\n").startsWith("line 3 of the file: column 2 has '256'"));
        assertTrue(problem("1,2,3,4\n1,x,3,4\n").contains("column 2 has 'x'"));
        assertTrue(problem("1,2.5,3,4\n").contains("column 2 has '2.5'"));
        assertTrue(problem("1,NaN,3,4\n").contains("column 2 has 'NaN'"));
        assertTrue(problem("1,2,3,4.5\n").contains("its label is '4.5'"));
    }

    @Test
    public void lineWithoutAnEndIsNotReadIntoMemory() {
        assertTrue(problem("1".repeat(100_000)).startsWith("line 1 of the file: it is longer"));
    }

    @Test
    public void fileWithoutRowsIsRefused() {
        assertEquals("the file has no rows", problem("a,b,c,label\n"));
        assertEquals("the file has no rows", problem(""));
    }
}
