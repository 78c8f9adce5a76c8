/** A device's own samples: reading, splitting, ordering, normalising. Knows neither network nor training. */
package org.edgefl.data;
