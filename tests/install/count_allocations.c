// SPDX-License-Identifier: Apache-2.0
// Preloaded before a program: counts what the C heap is asked for and says so at exit ("allocations N" on stderr).
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static atomic_ulong count;

static void tick(void) { atomic_fetch_add_explicit(&count, 1, memory_order_relaxed); }

void* malloc(size_t bytes) {
  tick();
  return __libc_malloc(bytes);
}

void* calloc(size_t items, size_t bytes) {
  tick();
  return __libc_calloc(items, bytes);
}

void* realloc(void* old, size_t bytes) {
  tick();
  return __libc_realloc(old, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  tick();
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** result, size_t alignment, size_t bytes) {
  void* memory = memalign(alignment, bytes);
  if (!memory) return ENOMEM;
  *result = memory;
  return 0;
}

__attribute__((destructor)) static void report(void) { fprintf(stderr, "allocations %lu\n", atomic_load(&count)); }
