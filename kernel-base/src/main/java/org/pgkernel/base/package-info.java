/** Identifiers, page layout, checksums, and the formats of PostgreSQL's small files. */
package org.pgkernel.base;
