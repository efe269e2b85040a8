/** Index page formats and their redo. */
package org.pgkernel.index;
