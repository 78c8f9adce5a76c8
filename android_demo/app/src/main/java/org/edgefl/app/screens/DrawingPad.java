package org.edgefl.app.screens;

import android.content.Context;
import android.util.AttributeSet;
import android.widget.ImageView;
import android.widget.LinearLayout;
import org.edgefl.app.R;
import org.edgefl.app.samples.PictureSamples;
import org.edgefl.values.SampleSpec;

/** Paper, a preview of what the model will see, and buttons to undo and clear. */
public final class DrawingPad extends LinearLayout {
    private final DrawView drawing;
    private final ImageView preview;
    private SampleSpec spec;
    private Runnable changed = () -> {};

    /** A pad in a layout. */
    public DrawingPad(Context context, AttributeSet attributes) {
        super(context, attributes);
        inflate(context, R.layout.part_pad, this);
        drawing = findViewById(R.id.drawing);
        preview = findViewById(R.id.preview);
        drawing.onChanged(this::update);
        findViewById(R.id.undo).setOnClickListener(clicked -> drawing.undo());
        findViewById(R.id.clear).setOnClickListener(clicked -> drawing.clear());
        LargeText.stack(findViewById(R.id.pad_buttons));
        update();
    }

    /** Draw for a federation. */
    void setSpec(SampleSpec spec) {
        if (spec != this.spec) {
            this.spec = spec;
            update();
        }
    }

    void onChanged(Runnable listener) {
        changed = listener;
    }

    boolean isEmpty() {
        return drawing.isEmpty();
    }

    void clear() {
        drawing.clear();
    }

    /** The drawing as ARGB pixels, row by row. */
    int[] pixels() {
        return drawing.pixels();
    }

    /** The side of {@link #pixels}. */
    int side() {
        return drawing.side();
    }

    /** Return the drawing as a sample of the federation. */
    byte[] raw() {
        return PictureSamples.raw(spec, PictureSamples.DRAWN, drawing.pixels(), drawing.side(), drawing.side());
    }

    private void update() {
        boolean empty = drawing.isEmpty();
        findViewById(R.id.undo).setEnabled(!empty);
        findViewById(R.id.clear).setEnabled(!empty);
        boolean shown = !empty && spec != null;
        preview.setImageDrawable(shown ? SamplePicture.of(getResources(), spec, raw()) : null);
        preview.setContentDescription(
            getContext().getString(empty ? R.string.preview_empty : R.string.preview_described));
        changed.run();
    }
}
