// SPDX-License-Identifier: BSD-3-Clause
//
// Preloaded into a program: writes to the file $MAPS what is mapped into the process at its end.
#include <stdio.h>
#include <stdlib.h>

__attribute__((destructor)) static void write_maps(void) {
  const char* path = getenv("MAPS");
  FILE* maps = fopen("/proc/self/maps", "r");
  FILE* copy = path != NULL ? fopen(path, "w") : NULL;
  if (maps == NULL || copy == NULL) {
    abort();
  }
  for (int c = getc(maps); c != EOF; c = getc(maps)) {
    putc(c, copy);
  }
  fclose(copy);
  fclose(maps);
}
