/** Redo engine, recovery control, and the service interfaces of resource managers. */
package org.pgkernel.recovery;
