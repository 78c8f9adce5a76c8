/** The documents that move between coordinator and device, as values. Fields that are not known are ignored. */
package org.edgefl.values;
