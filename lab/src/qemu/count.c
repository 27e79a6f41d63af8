/*
 * Counts what packets cost: client and server are one process with sockets in two network namespaces, so that all
 * processor time of a packet's way, forwarding included, is the process's own. With instruction counting a nanosecond
 * is an instruction. Prints instructions per unit.
 *
 *   count seed                                      entropy, without which drawing a number costs 10,000 instructions
 *   count connect|request CLIENT SERVER ADDRESS PORT TIMES
 *   count query CLIENT SERVER ADDRESS PORT TIMES     a datagram from a new port, and its answer
 *   count datagram CLIENT SERVER ADDRESS PORT TIMES  one way, after an answer made the flow known
 *   count stream   CLIENT SERVER ADDRESS PORT MEGABYTES
 *   count packets  CLIENT SERVER ADDRESS PORT MEGABYTES  the same, each packet as large as the device allows
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/random.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const int one = 1;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void demand(int met, const char *what) {
  if (!met) die(what);
}

static void enter(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  int file = open(path, O_RDONLY);
  demand(file >= 0 && setns(file, CLONE_NEWNET) == 0, path);
  close(file);
}

/* Whether a pod's device takes packets of 64 kB and gives them to the other side as they are. */
static void setLarge(const char *name, unsigned value) {
  const unsigned commands[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO};
  enter(name);
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  for (int at = 0; at < 3; at++) {
    struct ethtool_value asked = {commands[at], value};
    struct ifreq device = {.ifr_name = "eth0", .ifr_data = (void *)&asked};
    demand(ioctl(s, SIOCETHTOOL, &device) == 0, "ethtool");
  }
  close(s);
}

static double spent(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static struct sockaddr_in place(const char *address, int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  demand(inet_pton(AF_INET, address, &to.sin_addr) == 1, address);
  return to;
}

static int tcp(void) {
  int s = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return s;
}

static void connected(struct sockaddr_in to, int listening, int *client, int *server) {
  *client = tcp();
  demand(connect(*client, (void *)&to, sizeof to) == 0, "connect");
  *server = accept(listening, 0, 0);
  demand(*server >= 0, "accept");
  setsockopt(*server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void ask(int client, int server) {
  char byte = 'a';
  demand(write(client, &byte, 1) == 1 && read(server, &byte, 1) == 1, "request");
  demand(write(server, &byte, 1) == 1 && read(client, &byte, 1) == 1, "answer");
}

/* Each unit is a connection with one request; the first ones are not counted. */
static double connections(struct sockaddr_in to, int listening, long times) {
  const struct linger reset = {1, 0};
  double start = 0;
  for (long at = -50; at < times; at++) {
    int client, server;
    char byte;
    if (at == 0) start = spent();
    connected(to, listening, &client, &server);
    ask(client, server);
    close(client);
    demand(read(server, &byte, 1) == 0, "end");
    setsockopt(server, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(server);
  }
  return (spent() - start) / times;
}

static double requests(struct sockaddr_in to, int listening, long times) {
  int client, server;
  double start = 0;
  connected(to, listening, &client, &server);
  for (long at = -100; at < times; at++) {
    if (at == 0) start = spent();
    ask(client, server);
  }
  return (spent() - start) / times;
}

static double stream(struct sockaddr_in to, int listening, long megabytes) {
  static char piece[65536], room[1 << 18];
  const long first = 8000000, all = first + megabytes * 1000000;
  int client, server;
  connected(to, listening, &client, &server);
  fcntl(client, F_SETFL, O_NONBLOCK);
  fcntl(server, F_SETFL, O_NONBLOCK);
  double start = 0;
  long sent = 0, received = 0, from = 0;
  while (received < all) {
    long out = sent < all ? write(client, piece, sizeof piece) : 0;
    demand(out >= 0 || errno == EAGAIN, "write");
    if (out > 0) sent += out;
    long in = read(server, room, sizeof room);
    demand(in > 0 || errno == EAGAIN, "read");
    if (in > 0) received += in;
    else if (out <= 0) sched_yield();
    if (start == 0 && received >= first) start = spent(), from = received;
  }
  return (spent() - start) / ((received - from) / 1e6);
}

/* Answers a datagram from the address that it was sent to: the server has several. */
static void answer(int server) {
  char byte, control[CMSG_SPACE(sizeof(struct in_pktinfo))];
  struct sockaddr_in from;
  struct iovec data = {&byte, 1};
  struct msghdr message = {&from, sizeof from, &data, 1, control, sizeof control, 0};
  demand(recvmsg(server, &message, 0) == 1, "datagram");
  struct in_pktinfo *info = (void *)CMSG_DATA(CMSG_FIRSTHDR(&message));
  info->ipi_ifindex = 0;
  info->ipi_spec_dst = info->ipi_addr;
  demand(sendmsg(server, &message, 0) == 1, "sendmsg");
}

static void query(int client, int server) {
  char byte = 'a';
  demand(send(client, &byte, 1, 0) == 1, "send");
  answer(server);
  demand(recv(client, &byte, 1, 0) == 1, "answer");
}

static int datagramsTo(struct sockaddr_in to) {
  int client = socket(AF_INET, SOCK_DGRAM, 0);
  demand(connect(client, (void *)&to, sizeof to) == 0, "connect");
  return client;
}

/* Each unit is a flow of two packets; the first ones are not counted. */
static double queries(struct sockaddr_in to, int server, long times) {
  double start = 0;
  for (long at = -50; at < times; at++) {
    if (at == 0) start = spent();
    int client = datagramsTo(to);
    query(client, server);
    close(client);
  }
  return (spent() - start) / times;
}

/* What the server does not read is dropped there: its part is the same in all runs. */
static double datagrams(struct sockaddr_in to, int server, long times) {
  enum { AT_ONCE = 64 };
  static char bytes[64];
  struct mmsghdr messages[AT_ONCE];
  struct iovec data = {bytes, sizeof bytes};
  memset(messages, 0, sizeof messages);
  for (int at = 0; at < AT_ONCE; at++) messages[at].msg_hdr.msg_iov = &data, messages[at].msg_hdr.msg_iovlen = 1;
  int client = datagramsTo(to);
  for (int at = 0; at < 30; at++) query(client, server);
  double start = spent();
  for (long at = 0; at < times; at += AT_ONCE) demand(sendmmsg(client, messages, AT_ONCE, 0) == AT_ONCE, "sendmmsg");
  return (spent() - start) / times;
}

static void seed(void) {
  struct {
    int entropy, size;
    char bytes[256];
  } some = {2048, 256, {0}};
  for (int at = 0; at < 256; at++) some.bytes[at] = at * 7;
  demand(ioctl(open("/dev/urandom", O_RDWR), RNDADDENTROPY, &some) == 0, "seed");
}

int main(int count, char **of) {
  if (count == 2 && strcmp(of[1], "seed") == 0) return seed(), 0;
  if (count != 7) return fprintf(stderr, "count: see its source\n"), 2;
  const char *what = of[1];
  int isQuery = strcmp(what, "query") == 0, isDatagram = isQuery || strcmp(what, "datagram") == 0, isPackets = strcmp(what, "packets") == 0, port = atoi(of[5]);
  long times = atol(of[6]);
  const struct timeval patience = {20, 0};
  const int smallest = 1;
  struct sockaddr_in any = place("0.0.0.0", port), to = place(of[4], port);
  if (isPackets) setLarge(of[2], 0), setLarge(of[3], 0);
  enter(of[3]);
  int server = isDatagram ? socket(AF_INET, SOCK_DGRAM, 0) : tcp();
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (isDatagram) {
    setsockopt(server, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof smallest);
    setsockopt(server, IPPROTO_IP, IP_PKTINFO, &one, sizeof one);
  }
  demand(bind(server, (void *)&any, sizeof any) == 0, "bind");
  demand(isDatagram || listen(server, 1024) == 0, "listen");
  enter(of[2]);
  double result = strcmp(what, "connect") == 0   ? connections(to, server, times)
                  : strcmp(what, "request") == 0 ? requests(to, server, times)
                  : isQuery                      ? queries(to, server, times)
                  : isDatagram                   ? datagrams(to, server, times)
                                                 : stream(to, server, times);
  if (isPackets) setLarge(of[2], 1), setLarge(of[3], 1);
  printf("%.1f\n", result);
  return 0;
}
