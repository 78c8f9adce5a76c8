package org.edgefl.app.samples;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;
import org.edgefl.app.samples.SampleStore.Sample;
import org.edgefl.data.InvalidData;
import org.edgefl.data.LocalData;
import org.edgefl.values.SampleSpec;
import org.junit.After;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;

@RunWith(RobolectricTestRunner.class)
public final class SqliteSampleStoreTest {
    private static final SampleSpec SPEC = Specs.bytes(1, 2);
    private static final SampleSpec OTHER = Specs.bytes(1, 3);

    private SampleSpec current = SPEC;
    private SqliteSampleStore store = open();

    private SqliteSampleStore open() {
        store = new SqliteSampleStore(RuntimeEnvironment.getApplication(), () -> current);
        return store;
    }

    @After
    public void close() {
        store.close();
    }

    private static byte[] sample(int number) {
        return new byte[] {(byte) number, (byte) (number >> 8), 0, 0};
    }

    private static InputStream stream(byte[] bytes) {
        return new ByteArrayInputStream(bytes);
    }

    @Test
    public void samplesAreThereAfterTheProcessHasEnded() {
        long id = store.add(SPEC, 3, "drawn", sample(7));
        store.close();
        Sample found = open().page(-1, 0, 10).get(0);
        assertEquals(id, found.id());
        assertEquals(3, found.label());
        assertEquals("drawn", found.source());
        assertArrayEquals(sample(7), found.raw());
    }

    @Test
    public void pagesHaveTheNewestFirstAndOneClassIfAsked() {
        for (int i = 0; i < 5; i++) {
            store.add(SPEC, i % 2, "drawn", sample(i));
        }
        assertEquals(List.of(3, 2), store.page(-1, 1, 2).stream().map(each -> (int) each.raw()[0])
            .collect(Collectors.toList()));
        assertEquals(List.of(3, 1), store.page(1, 0, 10).stream().map(each -> (int) each.raw()[0])
            .collect(Collectors.toList()));
    }

    @Test
    public void samplesAreCountedByClassAndDeleted() {
        long first = store.add(SPEC, 1, "drawn", sample(1));
        store.add(SPEC, 1, "drawn", sample(2));
        store.add(SPEC, 9, "drawn", sample(3));
        assertArrayEquals(new int[] {0, 2, 0, 0, 0, 0, 0, 0, 0, 1}, store.countByClass(SPEC));
        store.delete(first);
        assertEquals(1, store.countByClass(SPEC)[1]);
        store.deleteAll();
        assertTrue(store.page(-1, 0, 10).isEmpty());
        assertThrows(InvalidData.class, () -> store.data(SPEC));
    }

    @Test
    public void samplesOfAnotherFormAreNeitherUsedNorLost() {
        store.add(SPEC, 1, "drawn", sample(1));
        current = OTHER;
        store.add(OTHER, 2, "drawn", new byte[9]);
        assertEquals(1, store.page(-1, 0, 10).size());
        assertEquals(1, store.data(OTHER).trainingSamples());
        assertEquals(1, store.data(SPEC).trainingSamples());
        current = SPEC;
        assertArrayEquals(sample(1), store.page(-1, 0, 10).get(0).raw());
        store.deleteAll();
        assertEquals(0, store.countByClass(OTHER)[2]);
    }

    @Test
    public void samplesThatDoNotFitAreRefused() {
        assertThrows(InvalidData.class, () -> store.add(SPEC, 10, "drawn", sample(1)));
        assertThrows(InvalidData.class, () -> store.add(SPEC, -1, "drawn", sample(1)));
        assertThrows(InvalidData.class, () -> store.add(SPEC, 1, "drawn", new byte[5]));
    }

    @Test
    public void importIsWholeOrNothing() throws IOException {
        byte[] good = "1,2,3,4,0\n5,6,7,8,1\n".getBytes(StandardCharsets.UTF_8);
        assertEquals(2, store.importCsv(SPEC, stream(good)));
        byte[] bad = "1,2,3,4,0\n5,6,7,8,99\n".getBytes(StandardCharsets.UTF_8);
        assertThrows(InvalidData.class, () -> store.importCsv(SPEC, stream(bad)));
        assertEquals(2, store.page(-1, 0, 10).size());
        assertEquals("csv", store.page(-1, 0, 1).get(0).source());
    }

    @Test
    public void npzOfTheRightShapeIsImported() throws IOException {
        byte[] file = Specs.npz(new byte[] {1, 2, 3, 4, 5, 6, 7, (byte) 200}, "(2, 1, 2, 2)", 4, 5);
        assertEquals(2, store.importNpz(SPEC, stream(file)));
        Sample last = store.page(-1, 0, 1).get(0);
        assertEquals(5, last.label());
        assertArrayEquals(new byte[] {5, 6, 7, (byte) 200}, last.raw());
    }

    @Test
    public void npzThatDoesNotFitIsRefusedWithAReason() throws IOException {
        byte[] shape = Specs.npz(new byte[8], "(2, 4)", 4, 5);
        byte[] label = Specs.npz(new byte[8], "(2, 1, 2, 2)", 4, 10);
        assertTrue(assertThrows(InvalidData.class, () -> store.importNpz(SPEC, stream(shape))).getMessage()
            .contains("1 x 2 x 2"));
        assertTrue(assertThrows(InvalidData.class, () -> store.importNpz(SPEC, stream(label))).getMessage()
            .contains("10 classes"));
        assertThrows(InvalidData.class, () -> store.importNpz(SPEC, stream("not a zip".getBytes(
            StandardCharsets.US_ASCII))));
    }

    @Test
    public void npzThatWouldSpoilTrainingOrTheAppIsRefused() throws IOException {
        SampleSpec floats = Specs.floats("[1]");
        byte[] nan = Specs.npz("<f4", new byte[] {0, 0, (byte) 0xc0, 0x7f}, "(1, 1)", 4);
        assertTrue(assertThrows(InvalidData.class, () -> store.importNpz(floats, stream(nan))).getMessage()
            .contains("NaN"));
        byte[] huge = Specs.npz(new byte[8], "(99999999999999999999, 1, 2, 2)", 4, 5);
        assertThrows(InvalidData.class, () -> store.importNpz(SPEC, stream(huge)));
        assertEquals(0, store.countByClass(floats)[4]);
    }

    @Test
    public void picturesThatNoPhoneCanKeepAreNotMade() {
        for (String shape : new String[] {"[3,9000,9000]", "[1,16384,16384]"}) {
            SampleSpec large = Specs.of(shape, "\"float64\"", "null", "null");
            assertFalse(PictureSamples.arePictures(large));
            assertThrows(InvalidData.class, () -> store.addPicture(large, 1, "drawn", new int[4], 2, 2));
        }
    }

    @Test
    public void tenthIsHeldOutAndStaysSoWhenSamplesComeAndGo() {
        for (int i = 0; i < 200; i++) {
            store.add(SPEC, i % 10, "drawn", sample(i));
        }
        List<Long> before = heldOut();
        assertEquals(20, before.size());
        assertTrue("one class must not be all of them", before.stream().map(id -> id % 10).distinct().count() > 3);
        store.delete(before.get(0));
        store.add(SPEC, 1, "drawn", sample(201));
        assertTrue(heldOut().containsAll(before.subList(1, before.size())));
        LocalData data = store.data(SPEC);
        assertEquals(200, data.trainingSamples() + data.validationSamples());
        assertEquals(heldOut().size(), data.validationSamples());
    }

    private List<Long> heldOut() {
        return store.page(-1, 0, 1000).stream().map(Sample::id).sorted().filter(HeldOut::isHeldOut)
            .collect(Collectors.toList());
    }

    @Test
    public void theOnlySampleIsTrainedOn() {
        assertArrayEquals(new boolean[1], HeldOut.of(new long[] {heldOutId()}));
        assertTrue(HeldOut.of(new long[] {heldOutId(), heldOutId() + 1})[0]);
        assertFalse(HeldOut.of(new long[] {heldOutId(), heldOutId() + 1})[1]);
    }

    private static long heldOutId() {
        for (long id = 1; ; id++) {
            if (HeldOut.isHeldOut(id) && !HeldOut.isHeldOut(id + 1)) {
                return id;
            }
        }
    }

    @Test
    public void twentyThousandSamplesWork() throws IOException {
        byte[] x = new byte[4 * 20_000];
        long[] y = new long[20_000];
        for (int i = 0; i < y.length; i++) {
            y[i] = i % 10;
            x[4 * i] = (byte) (i % 10);
        }
        assertEquals(20_000, store.importNpz(SPEC, stream(Specs.npz(x, "(20000, 1, 2, 2)", y))));
        assertEquals(2000, store.countByClass(SPEC)[7]);
        LocalData data = store.data(SPEC);
        assertEquals(18_000, data.trainingSamples(), 5);
        int[] some = {0, 9_000, data.trainingSamples() - 1};
        for (int i : some) {
            float pixel = data.x(new int[] {i}).toFloats()[0];
            assertEquals(data.y(new int[] {i}).longs().get(0), Math.round(pixel * 255));
        }
    }
}
