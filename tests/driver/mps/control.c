// What gpuctl needs of nvidia-cuda-mps-control, for tests. With -f it is the control daemon: it writes its pid file
// into the pipe directory and starts the server at once, not for the first client. It ends when the server does. With
// -d it does so in the background. Without arguments it takes one command from its standard input: quit, or
// get_server_list, which names the control daemon in place of the server, or get_client_list, which names what stands
// in the file `clients` of the pipe directory.
#define _GNU_SOURCE
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char pid_file[4096];

static int read_pid(void) {
  int pid = 0;
  FILE* file = fopen(pid_file, "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%d", &pid) != 1) pid = 0;
  fclose(file);
  return pid;
}

static void say_clients(const char* directory) {
  char path[4096], line[128];
  snprintf(path, sizeof path, "%s/clients", directory);
  FILE* file = fopen(path, "r");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) fputs(line, stdout);
  fclose(file);
}

static int command(const char* directory) {
  char line[128] = "";
  if (fgets(line, sizeof line, stdin) == NULL) return 1;
  const int pid = read_pid();
  if (pid <= 0) return 1;
  if (strncmp(line, "quit", 4) == 0) return kill(pid, SIGTERM) == 0 ? 0 : 1;
  if (strncmp(line, "get_server_list", 15) == 0) printf("%d\n", pid);
  if (strncmp(line, "get_client_list", 15) == 0) say_clients(directory);
  return 0;
}

int main(int argc, char** argv) {
  const char* directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
  if (directory == NULL) directory = "/tmp/nvidia-mps";
  snprintf(pid_file, sizeof pid_file, "%s/nvidia-cuda-mps-control.pid", directory);
  if (argc < 2) return command(directory);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ends, NULL);
  int ready[2] = {-1, -1};
  if (strcmp(argv[1], "-d") == 0) {
    char byte = 0;
    if (pipe(ready) != 0) return 1;
    if (fork() != 0) {
      close(ready[1]);
      return read(ready[0], &byte, 1) == 1 ? 0 : 1;
    }
    setsid();
    if (freopen("/dev/null", "r", stdin) == NULL || freopen("/dev/null", "w", stdout) == NULL) return 1;
  }
  FILE* file = fopen(pid_file, "w");
  if (file == NULL) return 1;
  fprintf(file, "%d\n", getpid());
  fclose(file);
  if (ready[1] >= 0 && write(ready[1], "x", 1) != 1) return 1;
  char server[4096];
  char own[4096] = "";
  if (readlink("/proc/self/exe", own, sizeof own - 1) < 0) return 1;
  snprintf(server, sizeof server, "%s/nvidia-cuda-mps-server", dirname(own));
  const pid_t child = fork();
  if (child == 0) {
    sigprocmask(SIG_UNBLOCK, &ends, NULL);
    execl(server, server, (char*)NULL);
    _exit(1);
  }
  int signal = 0;
  sigwait(&ends, &signal);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  unlink(pid_file);
  return signal == SIGTERM ? 0 : 1;
}
