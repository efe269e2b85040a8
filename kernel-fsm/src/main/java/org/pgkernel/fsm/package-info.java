/** Free space map, visibility map, and Storage redo. */
package org.pgkernel.fsm;
