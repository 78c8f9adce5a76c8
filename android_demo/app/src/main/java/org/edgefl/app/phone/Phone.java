package org.edgefl.app.phone;

import java.io.IOException;
import java.util.List;
import org.edgefl.agent.Invitation;
import org.edgefl.agent.JoinedFederation;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.samples.SampleStore;
import org.edgefl.model.DeviceModels;

/**
 * This phone's part in a federation: one for the process.
 *
 * <p>Methods that read files or the network say so, and are called from a background thread ({@link #background});
 * the others return at once. Listeners are called on the main thread.
 */
public interface Phone {
    /** Return why this phone cannot train, in words for its owner, or null if it can: an APK may lack the engine. */
    String engineProblem();

    /** Run something on the one background thread for short work of the screens. */
    void background(Runnable work);

    /** Run something that waits for the network, on a thread that nothing else waits for. */
    void network(Runnable work);

    /**
     * Ask a coordinator what it wants, before anything is joined or kept. Uses the network.
     *
     * @param uri a pairing URI of either form
     * @throws org.edgefl.EdgeFLError with problem and fix for the owner
     */
    Invitation invitation(String uri);

    /** Begin to join: measures the phone and enrols, in the background; {@link #activity} tells how it goes. */
    void join(Invitation invitation);

    /** The federation that this phone has joined, or null. */
    JoinedFederation federation();

    /** Stop, and forget the federation, its token, task, downloads and models. Samples stay. Uses files. */
    void leave() throws IOException;

    /** The owner's samples. */
    SampleStore samples();

    /** What the phone is doing now. */
    PhoneActivity activity();

    /** Call a listener after every change of activity, federation, settings or history, until it is removed. */
    void addListener(Runnable listener);

    /** Remove a listener. */
    void removeListener(Runnable listener);

    /** Train now, in a foreground service, until there is no task, the owner stops it, or a limit is reached. */
    void trainNow();

    /** Stop training soon; what is done is kept in a checkpoint. */
    void stopTraining();

    /** The owner's limits and wishes. */
    OwnerSettings settings();

    /** Keep new settings, and plan or cancel the nights by them. */
    void put(OwnerSettings settings);

    /** Every finished or refused task, the newest first. Reads a file. */
    List<TaskRecord> history();

    /** The personal and the shared model; each may be missing. Reads files, loads graphs: for a background thread. */
    DeviceModels models();
}
