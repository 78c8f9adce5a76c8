/**
 * The core of a device that takes part in a federation: plain Java on the API of Android 26.
 *
 * <p>Packages, from the bottom up; each knows only those above it in this list:
 *
 * <pre>
 * json     a strict reader and a writer
 * noise    counter-based random numbers
 * wire     bodies: named tensors as bytes
 * </pre>
 */
package org.edgefl;
