/* A library that does nothing, for tests of LD_PRELOAD. */
int gpuctl_preloaded_for_test(void);

int gpuctl_preloaded_for_test(void) {
  return 1;
}
