/** The closed family of errors. */
package org.pgkernel.base.error;
