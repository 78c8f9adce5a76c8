/**
 * What the phone tells about itself: energy, memory, heat, power, network (docs/phones.md).
 *
 * <p>Meters and conditions of the core, read from the system's services. Knows nothing of federations or screens.
 */
package org.edgefl.app.telemetry;
