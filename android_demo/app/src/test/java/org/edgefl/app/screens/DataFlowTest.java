package org.edgefl.app.screens;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.ClipData;
import android.content.Intent;
import android.graphics.Bitmap;
import android.graphics.Color;
import android.net.Uri;
import android.view.ViewGroup;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import org.edgefl.app.R;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowAlertDialog;
import org.robolectric.shadows.ShadowActivity.IntentForResult;

/** Samples: drawn, imported, counted, deleted. */
@RunWith(RobolectricTestRunner.class)
@Config(application = FakeApp.class, qualifiers = "w411dp-h891dp-xhdpi")
public final class DataFlowTest {
    private final Hand hand = new Hand();

    private void openDigits() {
        hand.phone.federation = Federations.joined(Federations.digits());
        hand.open(null);
        hand.go(Destination.DATA);
    }

    private DrawingPad pad() {
        return hand.find(R.id.pad);
    }

    @Test
    public void aDrawnSevenIsAddedAndCounted() {
        openDigits();
        assertEquals("No samples yet", hand.text(R.id.count_heading));
        assertFalse("nothing to add", hand.find(R.id.add).isEnabled());
        hand.drawSeven();
        assertFalse("without a class", hand.find(R.id.add).isEnabled());
        hand.chooseClass(7);
        assertEquals("Add as class 7", hand.text(R.id.add));
        hand.tap(R.id.add);
        assertEquals("1 sample", hand.text(R.id.count_heading));
        assertEquals(7, hand.phone.samples.all.get(0).label());
        assertEquals(784, hand.phone.samples.all.get(0).raw().length);
        assertTrue("a line was drawn", ink(hand.phone.samples.all.get(0).raw()) > 40);
        ViewGroup rows = hand.find(R.id.count_rows);
        assertEquals("Class 7: 1 sample", rows.getChildAt(7).getContentDescription());
        assertTrue("ready for the next", pad().isEmpty());
        hand.drawSeven();
        hand.tap(R.id.add);
        assertEquals("2 samples", hand.text(R.id.count_heading));
    }

    private static int ink(byte[] raw) {
        int bright = 0;
        for (byte value : raw) {
            bright += (value & 255) > 128 ? 1 : 0;
        }
        return bright;
    }

    @Test
    public void linesCanBeUndoneAndCleared() {
        openDigits();
        hand.drawSeven();
        int one = ink(pad().raw());
        hand.stroke(hand.find(R.id.drawing), 0.2f, 0.5f, 0.8f, 0.5f);
        assertNotEquals(one, ink(pad().raw()));
        hand.tap(R.id.undo);
        assertEquals(one, ink(pad().raw()));
        hand.tap(R.id.clear);
        assertTrue(pad().isEmpty());
    }

    @Test
    public void aDrawingOutlivesRotationAndProcessDeath() {
        openDigits();
        hand.chooseClass(3);
        hand.drawSeven();
        byte[] drawn = pad().raw();
        hand.screen().scrollTo(0, 321);
        hand.surviveProcessDeath();
        assertArrayEquals(drawn, pad().raw());
        assertEquals(321, hand.screen().getScrollY());
        hand.rotate();
        assertArrayEquals(drawn, pad().raw());
        hand.tap(R.id.add);
        assertEquals(3, hand.phone.samples.all.get(0).label());
    }

    @Test
    public void samplesAreDeletedAfterAQuestion() {
        openDigits();
        hand.chooseClass(1);
        for (int i = 0; i < 2; i++) {
            hand.drawSeven();
            hand.tap(R.id.add);
        }
        ViewGroup tiles = hand.find(R.id.samples_grid);
        hand.tap(tiles.getChildAt(0));
        assertEquals(2, hand.phone.samples.all.size());
        ShadowAlertDialog.getLatestAlertDialog().getButton(AlertDialog.BUTTON_POSITIVE).performClick();
        hand.settle();
        assertEquals("1 sample", hand.text(R.id.count_heading));
        assertEquals(1, tiles.getChildCount());
        hand.tap(R.id.delete_all);
        ShadowAlertDialog.getLatestAlertDialog().getButton(AlertDialog.BUTTON_NEGATIVE).performClick();
        hand.settle();
        assertEquals(1, hand.phone.samples.all.size());
        hand.tap(R.id.delete_all);
        ShadowAlertDialog.getLatestAlertDialog().getButton(AlertDialog.BUTTON_POSITIVE).performClick();
        hand.settle();
        assertTrue(hand.phone.samples.all.isEmpty());
        assertFalse(hand.sees(R.id.delete_all));
    }

    @Test
    public void severalPicturesAreImportedAsTheChosenClass() {
        openDigits();
        assertFalse(hand.find(R.id.import_pictures).isEnabled());
        hand.chooseClass(4);
        hand.tap(R.id.import_pictures);
        IntentForResult picker = shadowOf(hand.activity()).getNextStartedActivityForResult();
        assertEquals(Intent.ACTION_OPEN_DOCUMENT, picker.intent.getAction());
        assertTrue(picker.intent.getBooleanExtra(Intent.EXTRA_ALLOW_MULTIPLE, false));
        ClipData picked = ClipData.newRawUri("", picture("content://pictures/1"));
        picked.addItem(new ClipData.Item(picture("content://pictures/2")));
        Intent result = new Intent();
        result.setClipData(picked);
        shadowOf(hand.activity()).receiveResult(picker.intent, Activity.RESULT_OK, result);
        hand.settle();
        assertEquals("Added 2 samples.", hand.text(R.id.imported));
        assertEquals(4, hand.phone.samples.all.get(1).label());
        assertEquals("the middle is bright", 255, hand.phone.samples.all.get(0).raw()[14 * 28 + 14] & 255);
    }

    private static Uri picture(String address) {
        Bitmap picture = Bitmap.createBitmap(90, 60, Bitmap.Config.ARGB_8888);
        picture.eraseColor(Color.WHITE);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        picture.compress(Bitmap.CompressFormat.PNG, 100, out);
        return file(address, out.toByteArray());
    }

    private static Uri file(String address, byte[] content) {
        Uri uri = Uri.parse(address);
        shadowOf(RuntimeEnvironment.getApplication().getContentResolver())
            .registerInputStreamSupplier(uri, () -> new ByteArrayInputStream(content));
        return uri;
    }

    @Test
    public void rowsComeFromFilesAndBadOnesAreExplained() {
        hand.phone.federation = Federations.joined(Federations.rows());
        hand.open(null);
        hand.go(Destination.DATA);
        assertFalse("rows cannot be drawn", hand.sees(R.id.pad));
        assertFalse(hand.sees(R.id.import_pictures));
        importCsv("1,2,3,4,0\n5,6,7,8,2\n");
        assertEquals("Added 2 samples.", hand.text(R.id.imported));
        assertEquals("2 samples", hand.text(R.id.count_heading));
        importCsv("1,2,3\n");
        assertEquals("A row has 3 cells.", hand.text(R.id.problem_text));
        assertFalse(hand.text(R.id.problem_fix).isEmpty());
    }

    private void importCsv(String content) {
        hand.tap(R.id.import_csv);
        IntentForResult picker = shadowOf(hand.activity()).getNextStartedActivityForResult();
        Uri file = file("content://files/" + content.length(), content.getBytes(StandardCharsets.UTF_8));
        shadowOf(hand.activity()).receiveResult(picker.intent, Activity.RESULT_OK, new Intent().setData(file));
        hand.settle();
    }

    @Test
    public void beforeJoiningTheFederationIsNamedAsTheOneThatDecides() {
        hand.phone.samples.add(Federations.rows(), 1, "csv", new byte[16]);
        hand.open(null);
        hand.go(Destination.DATA);
        assertTrue(hand.sees(R.id.data_unjoined));
        assertFalse(hand.sees(R.id.import_card));
        assertTrue("samples of an earlier federation can go", hand.sees(R.id.delete_all));
        hand.tap(R.id.data_join);
        assertTrue(hand.sees(R.id.link_card));
    }
}
