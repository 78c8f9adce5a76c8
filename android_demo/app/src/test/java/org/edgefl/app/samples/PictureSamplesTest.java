package org.edgefl.app.samples;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import android.graphics.Bitmap;
import android.graphics.BitmapFactory;
import android.graphics.Canvas;
import android.graphics.Color;
import android.graphics.Paint;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.edgefl.data.InvalidData;
import org.edgefl.values.SampleSpec;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;

@RunWith(RobolectricTestRunner.class)
public final class PictureSamplesTest {
    private static int[] pixels(Bitmap picture) {
        int[] pixels = new int[picture.getWidth() * picture.getHeight()];
        picture.getPixels(pixels, 0, picture.getWidth(), 0, 0, picture.getWidth(), picture.getHeight());
        return pixels;
    }

    private static Bitmap bar(int paper, int ink, int left, int top, int right, int bottom) {
        Bitmap picture = Bitmap.createBitmap(80, 80, Bitmap.Config.ARGB_8888);
        picture.eraseColor(paper);
        Paint paint = new Paint();
        paint.setColor(ink);
        new Canvas(picture).drawRect(left, top, right, bottom, paint);
        return picture;
    }

    private static byte[] drawn(SampleSpec spec, Bitmap picture) {
        return PictureSamples.raw(spec, "drawn", pixels(picture), picture.getWidth(), picture.getHeight());
    }

    @Test
    public void pngBecomesTheMeanOfItsPixelsInTheMiddleSquare() {
        Bitmap wide = Bitmap.createBitmap(8, 4, Bitmap.Config.ARGB_8888);
        wide.eraseColor(Color.RED);
        for (int y = 0; y < 4; y++) {
            for (int x = 2; x < 6; x++) {
                boolean light = x < 4 ? y < 2 : x == 4;
                wide.setPixel(x, y, light ? Color.WHITE : Color.BLACK);
            }
        }
        ByteArrayOutputStream png = new ByteArrayOutputStream();
        wide.compress(Bitmap.CompressFormat.PNG, 100, png);
        Bitmap read = BitmapFactory.decodeByteArray(png.toByteArray(), 0, png.size());
        byte[] raw = PictureSamples.raw(Specs.bytes(1, 2), "image", pixels(read), 8, 4);
        assertArrayEquals(new byte[] {(byte) 255, (byte) 128, 0, (byte) 128}, raw);
    }

    @Test
    public void colourPictureHasItsChannelsOneAfterAnother() {
        int[] orange = {0xffff8000, 0xffff8000, 0xffff8000, 0xffff8000};
        byte[] raw = PictureSamples.raw(Specs.bytes(3, 1), "image", orange, 2, 2);
        assertArrayEquals(new byte[] {(byte) 255, (byte) 128, 0}, raw);
        byte[] grey = PictureSamples.raw(Specs.bytes(1, 1), "image", orange, 2, 2);
        assertEquals(Math.rint(0.299 * 255 + 0.587 * 128), grey[0] & 255, 0);
    }

    @Test
    public void drawingIsLightInkOnDarkPaperWhateverTheScreensColours() {
        SampleSpec spec = Specs.bytes(1, 8);
        byte[] onWhite = drawn(spec, bar(Color.WHITE, Color.BLACK, 30, 10, 50, 70));
        byte[] onBlack = drawn(spec, bar(Color.BLACK, Color.WHITE, 30, 10, 50, 70));
        byte[] darkOnNothing = drawn(spec, bar(Color.TRANSPARENT, Color.BLACK, 30, 10, 50, 70));
        byte[] lightOnNothing = drawn(spec, bar(Color.TRANSPARENT, Color.WHITE, 30, 10, 50, 70));
        assertEquals(255, onWhite[8 * 4 + 4] & 255);
        assertEquals(0, onWhite[0]);
        assertArrayEquals(onWhite, onBlack);
        assertArrayEquals(onWhite, darkOnNothing);
        assertArrayEquals(onWhite, lightOnNothing);
    }

    @Test
    public void photographIsNeverInverted() {
        Bitmap bright = bar(Color.WHITE, Color.BLACK, 30, 10, 50, 70);
        byte[] raw = PictureSamples.raw(Specs.bytes(1, 8), "image", pixels(bright), 80, 80);
        assertEquals(255, raw[0] & 255);
        assertEquals(0, raw[8 * 4 + 4]);
    }

    @Test
    public void drawingTakesPaperAndSizeOfTheInkFromTheExample() {
        byte[] example = new byte[64];
        Arrays.fill(example, (byte) 255);
        for (int y = 2; y < 6; y++) {
            example[8 * y + 4] = 0;
        }
        SampleSpec spec = Specs.withExample(8, example);
        // The same bar, small in a corner, fills the middle half as the example's does, dark on light.
        byte[] raw = drawn(spec, bar(Color.BLACK, Color.WHITE, 60, 4, 65, 24));
        assertEquals(255, raw[8 + 4] & 255);
        assertTrue((raw[8 * 2 + 4] & 255) < 255 && (raw[8 * 5 + 4] & 255) < 255);
        assertEquals(255, raw[8 * 6 + 4] & 255);
        assertEquals(255, raw[8 * 3 + 1] & 255);
    }

    @Test
    public void floatsAreFromZeroToOneIfTheFederationDoesNotSay() {
        byte[] raw = drawn(Specs.floats("[1,2,2]"), bar(Color.BLACK, Color.WHITE, 0, 0, 40, 20));
        ByteBuffer numbers = ByteBuffer.wrap(raw).order(ByteOrder.LITTLE_ENDIAN);
        assertEquals(16, raw.length);
        assertEquals(0.5f, numbers.getFloat(0), 0.01f);
        assertEquals(0f, numbers.getFloat(12), 0f);
    }

    @Test
    public void federationWithoutPicturesTakesNone() {
        assertThrows(InvalidData.class,
            () -> PictureSamples.raw(Specs.floats("[4]"), "image", new int[] {0, 0, 0, 0}, 2, 2));
    }
}
