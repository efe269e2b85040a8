/**
 * Golden scripts: what two or three sessions see of each other, in every order of their steps, as
 * text that anyone can read.
 */
package org.pgkernel.testkit.golden;
