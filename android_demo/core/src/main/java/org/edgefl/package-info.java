/**
 * The core of a device that takes part in a federation: plain Java on the API of Android 26.
 *
 * <p>Packages, from the bottom up:
 *
 * <pre>
 * json        a strict, bounded reader and a writer
 * noise       counter-based random numbers
 * wire        bodies: named tensors as bytes
 * masks       model graphs, masks and their digests
 * values      documents of the protocol
 * data        samples: reading, splitting, ordering, normalising
 * rules       training on the device, one method per file
 * engine      runs training and inference graphs
 * files       files that are whole or not there
 * telemetry   what a task costs
 * training    one task from downloads to result
 * profile     what the device can do
 * model       predictions with the models on the device
 * http        how the coordinator is reached
 * agent       the life of a device
 * </pre>
 */
package org.edgefl;
