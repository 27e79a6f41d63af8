/*
 * Servers that answer with their own number, and clients with many open flows: what each flow lives through.
 *
 *   talk serve NAMESPACE PROTOCOL PORT ADDRESS...   until it is killed; the first address has the number 0
 *   talk ask   NAMESPACE PROTOCOL PORT ADDRESS FLOWS EVERY SIZE STOP
 *       each flow sends SIZE bytes every EVERY ms, once the answer to the ones before is there, until the file STOP
 *       exists; prints
 *       flows=N answers=N lost=N stalled=N longest=MS moved=N
 *       lost: ended by the other side, refused, or without an answer at the end; stalled: answers later than 0.3 s;
 *       moved: answers of another server than the flow's previous one
 *
 * PROTOCOL: tcp, udp, sctp. A lost datagram is a stall: the next one is sent after that time.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024, LARGEST = 16384 };
static const double STALL = 300;
static const int one = 1;
static char bytes[LARGEST];

struct head {
  uint32_t sequence, server;
};

static void demand(int met, const char *what) {
  if (met) return;
  perror(what);
  exit(1);
}

static void enter(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  int file = open(path, O_RDONLY);
  demand(file >= 0 && setns(file, CLONE_NEWNET) == 0, path);
  close(file);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

struct place {
  struct sockaddr_storage address;
  socklen_t length;
};

static struct place place(const char *text, int port) {
  struct place at = {0};
  struct sockaddr_in *four = (void *)&at.address;
  struct sockaddr_in6 *six = (void *)&at.address;
  if (strchr(text, ':')) {
    six->sin6_family = AF_INET6, six->sin6_port = htons(port), at.length = sizeof *six;
    demand(inet_pton(AF_INET6, text, &six->sin6_addr) == 1, text);
  } else {
    four->sin_family = AF_INET, four->sin_port = htons(port), at.length = sizeof *four;
    demand(inet_pton(AF_INET, text, &four->sin_addr) == 1, text);
  }
  return at;
}

static int isUdp;
static int sctp;

static int open_socket(int family) {
  int s = isUdp ? socket(family, SOCK_DGRAM, 0) : socket(family, SOCK_STREAM, sctp ? IPPROTO_SCTP : 0);
  demand(s >= 0, "socket");
  if (!isUdp && !sctp) setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return s;
}

/* Messages are small: each comes in one piece, and a stream's flow has one on the way. */
static void serve(int port, int count, char **addresses) {
  static struct pollfd polled[MOST];
  static uint32_t number[MOST];
  int used = count;
  for (int at = 0; at < count; at++) {
    struct place own = place(addresses[at], port);
    int s = open_socket(own.address.ss_family);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    demand(bind(s, (void *)&own.address, own.length) == 0, "bind");
    demand(isUdp || listen(s, MOST) == 0, "listen");
    polled[at] = (struct pollfd){.fd = s, .events = POLLIN}, number[at] = at;
  }
  for (;;) {
    demand(poll(polled, used, -1) >= 0, "poll");
    for (int at = used - 1; at >= 0; at--) {
      if (polled[at].revents == 0) continue;
      struct head *head = (void *)bytes;
      if (isUdp) {
        struct place from = {.length = sizeof from.address};
        ssize_t length = recvfrom(polled[at].fd, bytes, sizeof bytes, 0, (void *)&from.address, &from.length);
        if (length < (ssize_t)sizeof *head) continue;
        head->server = number[at];
        sendto(polled[at].fd, bytes, length, 0, (void *)&from.address, from.length);
      } else if (at < count) {
        int accepted = accept(polled[at].fd, 0, 0);
        if (accepted < 0) continue;
        demand(used < MOST, "too many connections");
        if (!sctp) setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        polled[used] = (struct pollfd){.fd = accepted, .events = POLLIN}, number[used++] = number[at];
      } else {
        ssize_t length = read(polled[at].fd, bytes, sizeof bytes);
        if (length > 0) {
          head->server = number[at];
          if (write(polled[at].fd, bytes, length) == length) continue;
        }
        close(polled[at].fd);
        polled[at] = polled[--used], number[at] = number[used];
      }
    }
  }
}

struct flow {
  int fd, waiting, last;
  uint32_t sequence;
  double sent, due;
};

static struct {
  long answers, lost, stalled, moved;
  double longest;
} seen;

static void arrived(struct flow *flow, const struct head *head, double every) {
  double at = now(), took = at - flow->sent;
  if (head->sequence != flow->sequence) return;
  seen.answers++;
  if (took > STALL && !(isUdp && flow->waiting == 2)) seen.stalled++;
  if (took > seen.longest) seen.longest = took;
  if (flow->last >= 0 && flow->last != (int)head->server) seen.moved++;
  flow->last = (int)head->server, flow->waiting = 0, flow->due = flow->sent + every;
}

static void connect_flow(struct flow *flow, const struct place *to) {
  flow->fd = open_socket(to->address.ss_family), flow->waiting = 0, flow->last = -1;
  if (connect(flow->fd, (void *)&to->address, to->length) != 0) {
    seen.lost++, close(flow->fd), flow->fd = -1, flow->due = now() + STALL;
    return;
  }
  fcntl(flow->fd, F_SETFL, O_NONBLOCK);
}

static void say(struct flow *flow, int size) {
  struct head *head = (void *)bytes;
  *head = (struct head){.sequence = ++flow->sequence};
  flow->sent = now(), flow->waiting = 1;
  if (send(flow->fd, bytes, size, MSG_NOSIGNAL) == size) return;
  /* A datagram's error belongs to one before it: it will be missed, as one that is lost. */
  if (!isUdp) seen.lost++, close(flow->fd), flow->fd = -1, flow->due = now() + STALL;
}

static void hear(struct flow *flow, double every) {
  ssize_t length = recv(flow->fd, bytes, sizeof bytes, 0);
  if (length >= (ssize_t)sizeof(struct head)) return arrived(flow, (void *)bytes, every);
  if (length < 0 && (errno == EAGAIN || isUdp)) return;
  seen.lost++, close(flow->fd), flow->fd = -1, flow->due = now() + STALL;
}

static void ask(struct place to, int count, double every, int size, const char *stop) {
  static struct flow flows[MOST];
  static struct pollfd polled[MOST];
  for (int at = 0; at < count; at++) {
    connect_flow(&flows[at], &to);
    flows[at].due = now() + every * at / count;
  }
  int ending = 0;
  for (double end = 0; !ending || now() < end;) {
    if (!ending && access(stop, F_OK) == 0) ending = 1, end = now() + 2 * STALL;
    int waiting = 0;
    double at = now();
    for (int i = 0; i < count; i++) {
      struct flow *flow = &flows[i];
      /* Lost, or only late: once. */
      if (flow->fd >= 0 && isUdp && flow->waiting == 1 && at - flow->sent > STALL) {
        seen.stalled++, flow->waiting = 2;
        flow->due = at;
      }
      if (!ending && at >= flow->due && flow->fd < 0) connect_flow(flow, &to);
      if (!ending && at >= flow->due && flow->fd >= 0 && flow->waiting != 1) say(flow, size);
      waiting += flow->waiting;
      polled[i] = (struct pollfd){.fd = flow->fd, .events = POLLIN};
    }
    if (ending && waiting == 0) break;
    demand(poll(polled, count, 5) >= 0, "poll");
    for (int i = 0; i < count; i++)
      if (polled[i].revents != 0 && flows[i].fd >= 0) hear(&flows[i], every);
  }
  for (int i = 0; i < count; i++) seen.lost += flows[i].waiting == 1;
  printf("flows=%d answers=%ld lost=%ld stalled=%ld longest=%.0f moved=%ld\n", count, seen.answers, seen.lost,
         seen.stalled, seen.longest, seen.moved);
}

int main(int count, char **of) {
  demand(count >= 6, "usage: see its source");
  isUdp = strcmp(of[3], "udp") == 0, sctp = strcmp(of[3], "sctp") == 0;
  enter(of[2]);
  if (strcmp(of[1], "serve") == 0) serve(atoi(of[4]), count - 5, of + 5);
  demand(count == 10, "usage: see its source");
  ask(place(of[5], atoi(of[4])), atoi(of[6]), atof(of[7]), atoi(of[8]), of[9]);
  return 0;
}
