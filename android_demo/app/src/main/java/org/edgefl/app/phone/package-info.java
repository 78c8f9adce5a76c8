/**
 * What the screens see of this phone's part in a federation, and its implementation on Android.
 *
 * <p>{@link org.edgefl.app.phone.Phone} is the seam: screens know nothing of services, jobs, keys or sensors.
 */
package org.edgefl.app.phone;
