/* SPDX-License-Identifier: Apache-2.0 */
/* A library of its own, linked with -z initfirst: its constructor runs before libgomp's, which reads the environment
 * once.
 *
 * Idle OpenMP threads otherwise spin for milliseconds after each region and take the core from the data pipeline. They
 * wait passively here. Settings of the user stand. See docs/decisions/0004-openmp.md. */
#include <stdlib.h>

__attribute__((constructor)) static void set_policy(void) {
  setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
  setenv("OMP_DYNAMIC", "FALSE", 0);
}
