package org.edgefl.app.screens;

import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.content.Intent;
import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.graphics.Rect;
import android.net.Uri;
import android.os.Bundle;
import android.os.Looper;
import android.os.Parcel;
import android.os.SystemClock;
import android.view.MotionEvent;
import android.view.View;
import android.view.ViewGroup;
import android.widget.TextView;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.edgefl.app.R;
import org.robolectric.Robolectric;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;

/** An owner's eyes and finger: opens the app, looks, taps and draws by touch events of the window. */
public class Finger {
    ActivityController<MainActivity> controller;

    /** Open the app from the launcher, or by a link. */
    public final void open(String link) {
        controller = Robolectric.buildActivity(MainActivity.class, intent(link)).setup();
        settle();
    }

    /** Open a link while the app is open. */
    public final void openAgain(String link) {
        controller.newIntent(intent(link));
        settle();
    }

    private static Intent intent(String link) {
        Intent intent = new Intent(RuntimeEnvironment.getApplication(), MainActivity.class);
        return link == null ? intent : intent.setAction(Intent.ACTION_VIEW).setData(Uri.parse(link));
    }

    /** Leave the app for another one; return what the system keeps of it, as bytes. */
    public final byte[] goAway() {
        Bundle state = new Bundle();
        controller.pause().stop().saveInstanceState(state);
        Parcel parcel = Parcel.obtain();
        parcel.writeBundle(state);
        byte[] bytes = parcel.marshall();
        parcel.recycle();
        return bytes;
    }

    /** Close the app, and what its screens have opened. */
    public final void close() {
        controller.pause().stop().destroy();
        settle();
    }

    /** Come back to an app that was opened by a link, or null, and whose process has died since. */
    public final void comeBack(String link, byte[] kept) {
        Parcel parcel = Parcel.obtain();
        parcel.unmarshall(kept, 0, kept.length);
        parcel.setDataPosition(0);
        Bundle state = parcel.readBundle(MainActivity.class.getClassLoader());
        parcel.recycle();
        controller = Robolectric.buildActivity(MainActivity.class, intent(link)).setup(state);
        settle();
    }

    final void go(Destination destination) {
        NavigationBar bar = activity().findViewById(R.id.navigation);
        tap(bar.item(destination));
    }

    /** Go to the screen with a title. */
    public final void go(int title) {
        go(Arrays.stream(Destination.values()).filter(each -> each.title == title).findFirst().get());
    }

    /** The window that is touched. */
    public final MainActivity activity() {
        return controller.get();
    }

    /** The screen that is open. */
    public final View screen() {
        ViewGroup content = activity().findViewById(R.id.content);
        for (int i = 0; i < content.getChildCount(); i++) {
            if (content.getChildAt(i).getVisibility() == View.VISIBLE) {
                return content.getChildAt(i);
            }
        }
        throw new AssertionError("no screen is visible");
    }

    /** A view of the open screen. */
    public final <T extends View> T find(int id) {
        T found = screen().findViewById(id);
        assertTrue("not on this screen", found != null);
        return found;
    }

    /** What a view says; nothing if it is not shown. */
    public final String text(int id) {
        TextView view = find(id);
        return view.isShown() ? view.getText().toString() : "";
    }

    /** Whether a view is shown, or would be after scrolling. */
    public final boolean sees(int id) {
        return find(id).isShown();
    }

    /** Let the main thread do everything that waits. */
    public void settle() {
        shadowOf(Looper.getMainLooper()).idle();
    }

    /** Scroll until a view is seen. */
    public final void scrollTo(int id) {
        scrollTo(find(id));
    }

    private void scrollTo(View view) {
        view.requestRectangleOnScreen(new Rect(0, 0, view.getWidth(), view.getHeight()), true);
        settle();
    }

    /** Scroll to a view, and tap its middle. */
    public final void tap(int id) {
        tap(find(id));
    }

    /** Scroll to a view, and tap its middle. */
    public final void tap(View view) {
        assertTrue("cannot tap what is not shown", view.isShown());
        scrollTo(view);
        stroke(view, 0.5f, 0.5f);
    }

    /** Draw a line over a view: pairs of shares of its width and height. */
    public final void stroke(View view, float... points) {
        touch(view, MotionEvent.ACTION_DOWN, points[0], points[1]);
        for (int i = 2; i < points.length; i += 2) {
            for (int part = 1; part <= 8; part++) {
                float share = part / 8f;
                touch(view, MotionEvent.ACTION_MOVE, points[i - 2] + share * (points[i] - points[i - 2]),
                    points[i - 1] + share * (points[i + 1] - points[i - 1]));
            }
        }
        touch(view, MotionEvent.ACTION_UP, points[points.length - 2], points[points.length - 1]);
        settle();
    }

    final void drawSeven() {
        draw(0.25f, 0.2f, 0.75f, 0.2f, 0.45f, 0.85f);
    }

    /** Scroll to the paper, and draw a line on it: pairs of shares of its side. */
    public final void draw(float... points) {
        View paper = find(R.id.drawing);
        scrollTo(paper);
        stroke(paper, points);
    }

    /** The drawing on the open screen, as the model will see it. */
    public final byte[] drawing() {
        DrawingPad pad = find(R.id.pad);
        return pad.isEmpty() ? new byte[0] : pad.raw();
    }

    /** Choose the class of the next sample. */
    public final void chooseClass(int label) {
        LabelPicker picker = find(R.id.label_picker);
        tap(((ViewGroup) picker.getChildAt(0)).getChildAt(label));
    }

    private void touch(View view, int action, float x, float y) {
        int[] at = new int[2];
        view.getLocationInWindow(at);
        long now = SystemClock.uptimeMillis();
        MotionEvent event = MotionEvent.obtain(now, now, action, at[0] + x * view.getWidth(),
            at[1] + y * view.getHeight(), 0);
        activity().getWindow().getDecorView().dispatchTouchEvent(event);
        event.recycle();
    }

    /** Turn the phone: the activity is made anew. */
    public final void rotate() {
        boolean upright = activity().getResources().getConfiguration().screenHeightDp > 500;
        RuntimeEnvironment.setQualifiers(upright ? "+w891dp-h411dp-land" : "+w411dp-h891dp-port");
        controller.configurationChange().visible();
        settle();
    }

    /** All views that can be seen, also those that one would have to scroll to. */
    final List<View> shown() {
        List<View> found = new ArrayList<>();
        collect(activity().findViewById(R.id.root), found);
        return found;
    }

    /** Everything that a part of the open screen says. */
    public static List<String> texts(View part) {
        List<View> found = new ArrayList<>();
        collect(part, found);
        return found.stream().filter(TextView.class::isInstance).map(view -> ((TextView) view).getText().toString())
            .collect(Collectors.toList());
    }

    /** The rows of a list that are seen now; not its header and footer. */
    public final List<View> rows(int id) {
        List<View> found = new ArrayList<>();
        for (View view : shown()) {
            if (view.getId() == id) {
                found.add(view);
            }
        }
        return found;
    }

    private static void collect(View view, List<View> found) {
        if (view.getVisibility() != View.VISIBLE) {
            return;
        }
        found.add(view);
        if (view instanceof ViewGroup group) {
            for (int i = 0; i < group.getChildCount(); i++) {
                collect(group.getChildAt(i), found);
            }
        }
    }

    /** Write what the window shows, and check that people can read it. */
    public final void readablePicture(String name) {
        Readable.check(this, name);
        picture(name).recycle();
    }

    /** Write what the window shows. */
    final Bitmap picture(String name) {
        View root = activity().getWindow().getDecorView();
        Bitmap picture = Bitmap.createBitmap(root.getWidth(), root.getHeight(), Bitmap.Config.ARGB_8888);
        root.draw(new Canvas(picture));
        File folder = new File("target/pictures");
        folder.mkdirs();
        try (OutputStream out = new FileOutputStream(new File(folder, name + ".png"))) {
            picture.compress(Bitmap.CompressFormat.PNG, 100, out);
        } catch (IOException error) {
            throw new AssertionError(error);
        }
        return picture;
    }
}
