package org.edgefl.app.screens;

import android.content.Context;
import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.graphics.Color;
import android.graphics.Paint;
import android.graphics.Path;
import android.graphics.Rect;
import android.os.Build;
import android.os.Bundle;
import android.os.Parcelable;
import android.text.Layout;
import android.text.StaticLayout;
import android.text.TextPaint;
import android.util.AttributeSet;
import android.view.MotionEvent;
import android.view.View;
import org.edgefl.app.R;
import org.edgefl.app.RequiresApi;

/** Square paper for a finger: white lines on black. */
public final class DrawView extends View {
    private static final String VIEW = "view";
    private static final String ORIENTATION = "orientation";
    /** A drawing is handed on at this size; it is scaled to the federation's from there. */
    private static final int SIDE = 224;

    private final Strokes strokes = new Strokes();
    private final Path edge = new Path();
    private final int orientation = getResources().getConfiguration().orientation;
    private Runnable changed = () -> {};
    private boolean drawing;

    /** Paper in a layout. */
    public DrawView(Context context, AttributeSet attributes) {
        super(context, attributes);
        setFocusable(true);
        describe();
    }

    /** Call a listener when a line has ended or was taken away. */
    void onChanged(Runnable listener) {
        changed = listener;
    }

    boolean isEmpty() {
        return strokes.isEmpty();
    }

    void undo() {
        strokes.undo();
        update();
    }

    void clear() {
        strokes.clear();
        update();
    }

    private void update() {
        describe();
        invalidate();
        changed.run();
    }

    private void describe() {
        setContentDescription(getContext().getString(R.string.drawing));
        if (Build.VERSION.SDK_INT >= 30) {
            describeState();
        }
    }

    @RequiresApi(30)
    private void describeState() {
        int count = strokes.count();
        setStateDescription(count == 0 ? getContext().getString(R.string.drawing_empty)
            : getResources().getQuantityString(R.plurals.drawing_lines, count, count));
    }

    /** The side of {@link #pixels}. */
    int side() {
        return SIDE;
    }

    /** The drawing as ARGB pixels, row by row. */
    int[] pixels() {
        Bitmap picture = Bitmap.createBitmap(SIDE, SIDE, Bitmap.Config.ARGB_8888);
        Canvas canvas = new Canvas(picture);
        canvas.drawColor(Color.BLACK);
        strokes.draw(canvas, SIDE, Color.WHITE);
        int[] pixels = new int[SIDE * SIDE];
        picture.getPixels(pixels, 0, SIDE, 0, 0, SIDE, SIDE);
        picture.recycle();
        return pixels;
    }

    @Override
    protected void onMeasure(int width, int height) {
        int most = getResources().getDimensionPixelSize(R.dimen.drawing_most);
        int side = Math.min(MeasureSpec.getSize(width), most);
        setMeasuredDimension(side, side);
    }

    @Override
    protected void onSizeChanged(int width, int height, int oldWidth, int oldHeight) {
        float corner = getResources().getDimension(R.dimen.corner);
        edge.reset();
        edge.addRoundRect(0, 0, width, height, corner, corner, Path.Direction.CW);
    }

    @Override
    protected void onDraw(Canvas canvas) {
        canvas.clipPath(edge);
        canvas.drawColor(getContext().getColor(R.color.paper));
        if (strokes.isEmpty()) {
            drawHint(canvas);
        }
        strokes.draw(canvas, getWidth(), getContext().getColor(R.color.ink));
    }

    private void drawHint(Canvas canvas) {
        TextPaint paint = new TextPaint(Paint.ANTI_ALIAS_FLAG);
        paint.setColor(getContext().getColor(R.color.hint_on_paper));
        paint.setTextSize(getResources().getDimension(R.dimen.hint_text));
        String hint = getContext().getString(R.string.drawing_hint);
        int room = getWidth() * 9 / 10;
        StaticLayout lines = StaticLayout.Builder.obtain(hint, 0, hint.length(), paint, room)
            .setAlignment(Layout.Alignment.ALIGN_CENTER).build();
        canvas.save();
        canvas.translate((getWidth() - room) / 2f, (getHeight() - lines.getHeight()) / 2f);
        lines.draw(canvas);
        canvas.restore();
    }

    @Override
    public boolean onTouchEvent(MotionEvent event) {
        switch (event.getActionMasked()) {
            case MotionEvent.ACTION_DOWN -> {
                // A line that goes down must not scroll the screen.
                getParent().requestDisallowInterceptTouchEvent(true);
                drawing = true;
                strokes.begin(event.getX() / getWidth(), event.getY() / getHeight());
            }
            case MotionEvent.ACTION_MOVE -> go(event);
            case MotionEvent.ACTION_UP -> {
                go(event);
                drawing = false;
                performClick();
            }
            case MotionEvent.ACTION_POINTER_UP -> {
                // The first of two fingers is gone: the line must not jump to the other one.
                drawing &= event.getActionIndex() != 0;
            }
            case MotionEvent.ACTION_CANCEL -> {
                drawing = false;
                undo();
            }
            default -> { }
        }
        invalidate();
        return true;
    }

    private void go(MotionEvent event) {
        if (!drawing) {
            return;
        }
        for (int i = 0; i < event.getHistorySize(); i++) {
            strokes.go(event.getHistoricalX(i) / getWidth(), event.getHistoricalY(i) / getHeight());
        }
        strokes.go(event.getX() / getWidth(), event.getY() / getHeight());
    }

    /** The end of a line. */
    @Override
    public boolean performClick() {
        super.performClick();
        update();
        return true;
    }

    @Override
    protected Parcelable onSaveInstanceState() {
        Bundle state = new Bundle();
        state.putParcelable(VIEW, super.onSaveInstanceState());
        strokes.save(state);
        state.putInt(ORIENTATION, orientation);
        return state;
    }

    @Override
    @SuppressWarnings("deprecation") // The typed variant needs API 33.
    protected void onRestoreInstanceState(Parcelable saved) {
        Bundle state = (Bundle) saved;
        super.onRestoreInstanceState(state.getParcelable(VIEW));
        strokes.restore(state);
        update();
        if (!isEmpty() && state.getInt(ORIENTATION) != orientation) {
            // The phone was turned in the middle of a drawing: what was on the screen is elsewhere now.
            post(() -> requestRectangleOnScreen(new Rect(0, 0, getWidth(), getHeight()), true));
        }
    }
}
