package org.edgefl.app.screens;

import android.content.ContentResolver;
import android.graphics.Bitmap;
import android.graphics.BitmapFactory;
import android.graphics.ImageDecoder;
import android.graphics.Matrix;
import android.media.ExifInterface;
import android.net.Uri;
import android.os.Build;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import org.edgefl.app.RequiresApi;

/**
 * A picture of a file, upright, and small enough for the memory of any phone.
 *
 * @param pixels ARGB, row by row
 */
record PictureFile(int[] pixels, int width, int height) {
    private static final int MOST = 1024;

    static PictureFile read(ContentResolver files, Uri file) throws IOException {
        Bitmap picture = Build.VERSION.SDK_INT >= 28 ? Decoder.decoded(files, file) : older(files, file);
        int width = picture.getWidth();
        int height = picture.getHeight();
        int[] pixels = new int[width * height];
        picture.getPixels(pixels, 0, width, 0, 0, width, height);
        picture.recycle();
        return new PictureFile(pixels, width, height);
    }

    /** How many pixels of the file become one, so that neither side is above the most. */
    private static int step(int width, int height) {
        int step = 1;
        while (Math.max(width, height) / step > MOST) {
            step *= 2;
        }
        return step;
    }

    /** From Android 9 on the system's decoder turns pictures upright. */
    @RequiresApi(28)
    private static final class Decoder {
        static Bitmap decoded(ContentResolver files, Uri file) throws IOException {
            return ImageDecoder.decodeBitmap(ImageDecoder.createSource(files, file), (decoder, info, source) -> {
                decoder.setAllocator(ImageDecoder.ALLOCATOR_SOFTWARE);
                decoder.setTargetSampleSize(step(info.getSize().getWidth(), info.getSize().getHeight()));
            });
        }
    }

    /** Up to Android 8.1: in two passes, and turned by hand. */
    private static Bitmap older(ContentResolver files, Uri file) throws IOException {
        BitmapFactory.Options options = new BitmapFactory.Options();
        options.inJustDecodeBounds = true;
        try (InputStream in = opened(files, file)) {
            BitmapFactory.decodeStream(in, null, options);
        }
        options.inJustDecodeBounds = false;
        options.inSampleSize = step(options.outWidth, options.outHeight);
        Bitmap picture;
        try (InputStream in = opened(files, file)) {
            picture = BitmapFactory.decodeStream(in, null, options);
        }
        if (picture == null) {
            throw new IOException("not a picture");
        }
        Matrix turn = new Matrix();
        try (InputStream in = opened(files, file)) {
            turn.postRotate(degrees(in));
        }
        return Bitmap.createBitmap(picture, 0, 0, picture.getWidth(), picture.getHeight(), turn, true);
    }

    private static InputStream opened(ContentResolver files, Uri file) throws IOException {
        InputStream in = files.openInputStream(file);
        if (in == null) {
            throw new FileNotFoundException();
        }
        return in;
    }

    private static int degrees(InputStream in) throws IOException {
        int orientation = new ExifInterface(in)
            .getAttributeInt(ExifInterface.TAG_ORIENTATION, ExifInterface.ORIENTATION_NORMAL);
        return switch (orientation) {
            case ExifInterface.ORIENTATION_ROTATE_90 -> 90;
            case ExifInterface.ORIENTATION_ROTATE_180 -> 180;
            case ExifInterface.ORIENTATION_ROTATE_270 -> 270;
            default -> 0;
        };
    }
}
