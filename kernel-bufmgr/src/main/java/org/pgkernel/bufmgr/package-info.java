/** The buffer manager. */
package org.pgkernel.bufmgr;
