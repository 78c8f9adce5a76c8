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
import java.util.List;
import org.edgefl.app.R;
import org.robolectric.Robolectric;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;

/** An owner's eyes and finger: opens the app, looks, taps and draws by touch events of the window. */
final class Hand {
    final FakePhone phone = ((FakeApp) RuntimeEnvironment.getApplication()).phone;
    ActivityController<MainActivity> controller;

    /** Open the app from the launcher, or by a link. */
    void open(String link) {
        Intent intent = new Intent(RuntimeEnvironment.getApplication(), MainActivity.class);
        if (link != null) {
            intent.setAction(Intent.ACTION_VIEW).setData(Uri.parse(link));
        }
        controller = Robolectric.buildActivity(MainActivity.class, intent).setup();
        settle();
    }

    void go(Destination destination) {
        NavigationBar bar = activity().findViewById(R.id.navigation);
        tap(bar.item(destination));
    }

    MainActivity activity() {
        return controller.get();
    }

    View screen() {
        ViewGroup content = activity().findViewById(R.id.content);
        for (int i = 0; i < content.getChildCount(); i++) {
            if (content.getChildAt(i).getVisibility() == View.VISIBLE) {
                return content.getChildAt(i);
            }
        }
        throw new AssertionError("no screen is visible");
    }

    <T extends View> T find(int id) {
        T found = screen().findViewById(id);
        assertTrue("not on this screen", found != null);
        return found;
    }

    String text(int id) {
        TextView view = find(id);
        return view.isShown() ? view.getText().toString() : "";
    }

    boolean sees(int id) {
        return find(id).isShown();
    }

    /** Let the background and the main thread do everything that waits. */
    void settle() {
        for (int i = 0; i < 20; i++) {
            shadowOf(Looper.getMainLooper()).idle();
            if (phone.holdBack || phone.work.isEmpty()) {
                return;
            }
            phone.work.poll().run();
        }
        shadowOf(Looper.getMainLooper()).idle();
    }

    void tap(int id) {
        tap(find(id));
    }

    /** Scroll to a view, and tap its middle. */
    void tap(View view) {
        assertTrue("cannot tap what is not shown", view.isShown());
        view.requestRectangleOnScreen(new Rect(0, 0, view.getWidth(), view.getHeight()), true);
        settle();
        stroke(view, 0.5f, 0.5f);
    }

    /** Draw a line over a view: pairs of shares of its width and height. */
    void stroke(View view, float... points) {
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

    void drawSeven() {
        View paper = find(R.id.drawing);
        paper.requestRectangleOnScreen(new Rect(0, 0, paper.getWidth(), paper.getHeight()), true);
        settle();
        stroke(paper, 0.25f, 0.2f, 0.75f, 0.2f, 0.45f, 0.85f);
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

    /** The system ends the process, and the owner comes back: only saved state is left, as bytes. */
    void surviveProcessDeath() {
        Bundle state = new Bundle();
        controller.pause().stop().saveInstanceState(state).destroy();
        phone.work.clear();
        Parcel parcel = Parcel.obtain();
        parcel.writeBundle(state);
        byte[] bytes = parcel.marshall();
        parcel.recycle();
        Parcel read = Parcel.obtain();
        read.unmarshall(bytes, 0, bytes.length);
        read.setDataPosition(0);
        Bundle restored = read.readBundle(MainActivity.class.getClassLoader());
        Intent intent = controller.getIntent();
        controller = Robolectric.buildActivity(MainActivity.class, intent).setup(restored);
        settle();
    }

    void rotate() {
        boolean upright = activity().getResources().getConfiguration().screenHeightDp > 500;
        RuntimeEnvironment.setQualifiers(upright ? "+w891dp-h411dp-land" : "+w411dp-h891dp-port");
        controller.configurationChange().visible();
        settle();
    }

    /** All views that can be seen, also those that one would have to scroll to. */
    List<View> shown() {
        List<View> found = new ArrayList<>();
        collect(activity().findViewById(R.id.root), found);
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

    /** Write what the window shows. */
    Bitmap picture(String name) {
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
