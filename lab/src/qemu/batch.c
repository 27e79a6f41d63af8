/*
 * Sends transactions of nf_tables, as the agent encodes them, in a network namespace.
 *
 *   batch load   NODE FILE...
 *   batch change NODE TIMES THERE BACK   two files in turns; prints instructions for each: of this process, and of the
 *                                        kernel's own threads, which free what is replaced
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void demand(int met, const char *what) {
  if (!met) die(what);
}

struct bytes {
  char *at;
  size_t length;
};

static struct bytes contents(const char *path) {
  struct stat facts;
  int file = open(path, O_RDONLY);
  demand(file >= 0 && fstat(file, &facts) == 0, path);
  struct bytes all = {malloc(facts.st_size), facts.st_size};
  demand(read(file, all.at, all.length) == facts.st_size, path);
  close(file);
  return all;
}

static int opened(const char *node, size_t largest) {
  char path[256];
  int room = largest + 4096, answers = 1 << 24;
  snprintf(path, sizeof path, "/run/netns/%s", node);
  int file = open(path, O_RDONLY);
  demand(file >= 0 && setns(file, CLONE_NEWNET) == 0, path);
  close(file);
  int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
  struct sockaddr_nl self = {.nl_family = AF_NETLINK};
  demand(s >= 0 && bind(s, (void *)&self, sizeof self) == 0, "socket");
  demand(setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) == 0, "SO_SNDBUFFORCE");
  demand(setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &answers, sizeof answers) == 0, "SO_RCVBUFFORCE");
  return s;
}

/* The kernel has answered by the time that the sending is over. */
static void commit(int s, struct bytes batch) {
  static char answer[1 << 16];
  int done = 0;
  demand(send(s, batch.at, batch.length, 0) == (ssize_t)batch.length, "send");
  for (;;) {
    ssize_t length = recv(s, answer, sizeof answer, MSG_DONTWAIT);
    if (length < 0 && errno == EAGAIN) break;
    demand(length > 0, "recv");
    for (struct nlmsghdr *at = (void *)answer; NLMSG_OK(at, length); at = NLMSG_NEXT(at, length)) {
      if (at->nlmsg_type != NLMSG_ERROR) continue;
      errno = -((struct nlmsgerr *)NLMSG_DATA(at))->error;
      demand(errno == 0, "the kernel refuses the transaction");
      done = 1;
    }
  }
  demand(done, "the kernel does not answer");
}

static double spent(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Of all processes but this one. */
static double spentByOthers(void) {
  double all = 0;
  DIR *processes = opendir("/proc");
  for (struct dirent *each; (each = readdir(processes));) {
    char path[300];
    double one;
    if (!isdigit(each->d_name[0]) || atoi(each->d_name) == getpid()) continue;
    snprintf(path, sizeof path, "/proc/%s/schedstat", each->d_name);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%lf", &one) == 1) all += one;
    if (file) fclose(file);
  }
  closedir(processes);
  return all;
}

int main(int count, char **of) {
  if (count > 3 && strcmp(of[1], "load") == 0) {
    for (int at = 3; at < count; at++) {
      struct bytes batch = contents(of[at]);
      commit(opened(of[2], batch.length), batch);
    }
    return 0;
  }
  if (count != 6 || strcmp(of[1], "change") != 0) return fprintf(stderr, "batch: see its source\n"), 2;
  struct bytes turns[] = {contents(of[4]), contents(of[5])};
  int times = atoi(of[3]), s = opened(of[2], turns[0].length > turns[1].length ? turns[0].length : turns[1].length);
  for (int at = 0; at < 4; at++) commit(s, turns[at % 2]);
  sleep(1);
  double others = spentByOthers(), start = spent();
  for (int at = 0; at < times; at++) commit(s, turns[at % 2]);
  double own = spent() - start;
  sleep(1);
  printf("%.1f\n", (own + spentByOthers() - others) / times);
  return 0;
}
