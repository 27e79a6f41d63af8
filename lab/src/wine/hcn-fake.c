/*
 * HCN in memory, for programs under Wine, which has no HCN. Built twice: as computenetwork.dll, and with -DVMCOMPUTE as
 * vmcompute.dll, of which service proxies ask the version of HNS.
 *
 * HCN_FIXTURE names a file of what there is at the start, a line each:
 *   version {"Major":15,"Minor":5}
 *   network|endpoint|loadbalancer {JSON with an ID}
 *   fail FUNCTION HRESULT TIMES
 * HCN_LOG names the file to which each call is added as a line of JSON. With HCN_KEPT set, what calls in that file have
 * changed is there as well: so a node outlives its service proxy, and the proxy that comes next finds its objects.
 *
 * HNS' older interface (HNSCall of vmcompute.dll) has the load balancers as well, as policy lists: kube-proxy deletes
 * all of them when it starts.
 *
 * It accepts what HNS may refuse. Ids are counted, and begin anew with each process: HCN_RUN is a part of them.
 */
#include <objbase.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum kind { NETWORK, ENDPOINT, LOADBALANCER, KINDS };

static const HRESULT MISSING[KINDS] = {0x803B0001, 0x803B0002, 0x80070490};
static const char *const WORDS[KINDS] = {"network ", "endpoint ", "loadbalancer "};

struct object {
  struct object *next;
  enum kind kind;
  GUID id;
  char *json;
};

struct refusal {
  char function[64];
  HRESULT code;
  int times;
};

static struct object *objects;
static struct refusal refusals[32];
static int refusal_count, call_count;
static unsigned next_id;
static char version[128] = "{\"Major\":15,\"Minor\":5}";
static CRITICAL_SECTION lock;
static FILE *log_file;

static char *copy(const char *text) {
  char *made = malloc(strlen(text) + 1);
  return strcpy(made, text);
}

static char *narrow(LPCWSTR text) {
  if (!text) return copy("");
  int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
  char *made = malloc(size);
  WideCharToMultiByte(CP_UTF8, 0, text, -1, made, size, NULL, NULL);
  return made;
}

/* The caller frees it, as COM has it. */
static LPWSTR give(const char *text) {
  int size = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
  LPWSTR made = CoTaskMemAlloc(size * sizeof(WCHAR));
  MultiByteToWideChar(CP_UTF8, 0, text, -1, made, size);
  return made;
}

static void print_id(const GUID *id, char *text) {
  const unsigned char *rest = id->Data4;
  sprintf(text, "%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", (unsigned long)id->Data1, id->Data2, id->Data3, rest[0],
          rest[1], rest[2], rest[3], rest[4], rest[5], rest[6], rest[7]);
}

static int read_id(const char *text, GUID *id) {
  unsigned long one;
  unsigned two, three, rest[8];
  int i, found = sscanf(text, "%8lx-%4x-%4x-%2x%2x-%2x%2x%2x%2x%2x%2x", &one, &two, &three, &rest[0], &rest[1], &rest[2],
                        &rest[3], &rest[4], &rest[5], &rest[6], &rest[7]);
  if (found != 11) return 0;
  id->Data1 = one;
  id->Data2 = two;
  id->Data3 = three;
  for (i = 0; i < 8; i++) id->Data4[i] = rest[i];
  return 1;
}

/* The text after "FIELD": in JSON, or in JSON within JSON (\"FIELD\":). */
static int field(const char *json, const char *name, char *into, size_t size) {
  char plain[80], nested[80];
  const char *at;
  size_t length = 0;
  sprintf(plain, "\"%s\":\"", name);
  sprintf(nested, "\\\"%s\\\":\\\"", name);
  if ((at = strstr(json, plain))) at += strlen(plain);
  else if ((at = strstr(json, nested))) at += strlen(nested);
  else return 0;
  while (*at && *at != '"' && *at != '\\' && length + 1 < size) into[length++] = *at++;
  into[length] = 0;
  return 1;
}

static struct object *find(enum kind kind, const GUID *id) {
  struct object *one;
  for (one = objects; one; one = one->next)
    if (one->kind == kind && !memcmp(&one->id, id, sizeof *id)) return one;
  return NULL;
}

/* Objects are listed in the order in which they were made. */
static void put(enum kind kind, const GUID *id, char *json) {
  struct object **end, *one = find(kind, id);
  if (one) {
    free(one->json);
    one->json = json;
    return;
  }
  one = malloc(sizeof *one);
  one->next = NULL;
  one->kind = kind;
  one->id = *id;
  one->json = json;
  for (end = &objects; *end; end = &(*end)->next) continue;
  *end = one;
}

static void drop(enum kind kind, const GUID *id) {
  struct object **at;
  for (at = &objects; *at; at = &(*at)->next) {
    struct object *one = *at;
    if (one->kind != kind || memcmp(&one->id, id, sizeof *id)) continue;
    *at = one->next;
    free(one->json);
    free(one);
    return;
  }
}

/* What a caller gave, with the id. */
static char *stored(const GUID *id, const char *settings) {
  char text[40], *made = malloc(strlen(settings) + 64);
  const char *rest = settings + 1;
  print_id(id, text);
  sprintf(made, "{\"ID\":\"%s\"%s%s", text, *rest == '}' ? "" : ",", rest);
  return made;
}

static HRESULT refused(const char *function) {
  int i;
  for (i = 0; i < refusal_count; i++) {
    struct refusal *one = &refusals[i];
    if (strcmp(one->function, function) || one->times == 0) continue;
    one->times--;
    return one->code;
  }
  return S_OK;
}

static void note(const char *function, const GUID *id, const char *name, const char *json, HRESULT code) {
  char text[40];
  if (!log_file) return;
  fprintf(log_file, "{\"n\":%d,\"call\":\"%s\"", ++call_count, function);
  if (id) {
    print_id(id, text);
    fprintf(log_file, ",\"id\":\"%s\"", text);
  }
  if (json && *json) fprintf(log_file, ",\"%s\":%s", name, json);
  if (code) fprintf(log_file, ",\"hr\":\"0x%08lx\"", (unsigned long)code);
  fputs("}\n", log_file);
  fflush(log_file);
}

static char *read_line(FILE *file) {
  static char line[1 << 16];
  if (!fgets(line, sizeof line, file)) return NULL;
  line[strcspn(line, "\r\n")] = 0;
  return line;
}

static void read_fixture(const char *path) {
  char *line, id[64];
  GUID guid;
  int kind;
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!file) return;
  while ((line = read_line(file))) {
    struct refusal *one = &refusals[refusal_count];
    unsigned code;
    if (!strncmp(line, "version ", 8)) strncpy(version, line + 8, sizeof version - 1);
    for (kind = 0; kind < KINDS; kind++) {
      const char *json = line + strlen(WORDS[kind]);
      if (strncmp(line, WORDS[kind], strlen(WORDS[kind]))) continue;
      if (field(json, "ID", id, sizeof id) && read_id(id, &guid)) put(kind, &guid, copy(json));
    }
    if (refusal_count < 32 && sscanf(line, "fail %63s %x %d", one->function, &code, &one->times) == 3) {
      one->code = code;
      refusal_count++;
    }
  }
  fclose(file);
}

/* What the calls of earlier processes have left. */
static void read_kept(const char *path) {
  char *line, call[64], id[64];
  GUID guid;
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!file) return;
  while ((line = read_line(file))) {
    char *settings = strstr(line, ",\"settings\":");
    enum kind kind;
    if (strstr(line, ",\"hr\":\"0x") || !field(line, "call", call, sizeof call) || !field(line, "id", id, sizeof id)) continue;
    if (!read_id(id, &guid)) continue;
    kind = strstr(call, "LoadBalancer") ? LOADBALANCER : strstr(call, "Endpoint") ? ENDPOINT : NETWORK;
    if (!strncmp(call, "HcnDelete", 9)) drop(kind, &guid);
    else if (settings && (!strncmp(call, "HcnCreate", 9) || !strncmp(call, "HcnModify", 9))) {
      line[strlen(line) - 1] = 0;
      put(kind, &guid, stored(&guid, settings + strlen(",\"settings\":")));
    }
  }
  fclose(file);
}

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, LPVOID reserved) {
  (void)instance;
  (void)reserved;
  if (reason != DLL_PROCESS_ATTACH) return TRUE;
  InitializeCriticalSection(&lock);
  read_fixture(getenv("HCN_FIXTURE"));
  if (getenv("HCN_KEPT")) read_kept(getenv("HCN_LOG"));
  if (getenv("HCN_RUN")) next_id = (unsigned)atoi(getenv("HCN_RUN")) << 20;
  if (getenv("HCN_LOG")) log_file = fopen(getenv("HCN_LOG"), "ab");
  return TRUE;
}

#define API __declspec(dllexport) HRESULT WINAPI

#ifdef VMCOMPUTE

typedef HRESULT(WINAPI *enumerate_call)(LPCWSTR, LPWSTR *, LPWSTR *);
typedef HRESULT(WINAPI *delete_call)(GUID *, LPWSTR *);

/* A function of the library that has the objects. */
static FARPROC function_of(const char *name) {
  return GetProcAddress(LoadLibraryA("computenetwork.dll"), name);
}

/* ["ID",…] as [{"ID":"ID"},…] */
static char *policy_lists(void) {
  LPWSTR ids = NULL, error = NULL;
  char *list, *made, *at, *id;
  ((enumerate_call)function_of("HcnEnumerateLoadBalancers"))(L"{}", &ids, &error);
  list = narrow(ids ? ids : L"[]");
  CoTaskMemFree(ids);
  made = malloc(strlen(list) * 2 + 3);
  at = made + sprintf(made, "[");
  for (id = strtok(list, "[],\""); id; id = strtok(NULL, "[],\""))
    at += sprintf(at, "%s{\"ID\":\"%s\"}", at[-1] == '[' ? "" : ",", id);
  strcpy(at, "]");
  free(list);
  return made;
}

API HNSCall(LPCWSTR method, LPCWSTR path, LPCWSTR body, LPWSTR *response) {
  static const char LISTS[] = "/policylists/";
  char *verb = narrow(method), *what = narrow(path), *output, *answer, request[256];
  GUID id;
  LPWSTR error = NULL;
  (void)body;
  snprintf(request, sizeof request, "\"%s %s\"", verb, what);
  EnterCriticalSection(&lock);
  note("HNSCall", NULL, "request", request, S_OK);
  LeaveCriticalSection(&lock);
  if (!strcmp(what, "/globals/version")) output = copy(version);
  else if (!strcmp(what, LISTS)) output = policy_lists();
  else output = copy("[]");
  if (!strcmp(verb, "DELETE") && !strncmp(what, LISTS, strlen(LISTS)) && read_id(what + strlen(LISTS), &id))
    ((delete_call)function_of("HcnDeleteLoadBalancer"))(&id, &error);
  answer = malloc(strlen(output) + 64);
  sprintf(answer, "{\"Success\":true,\"Output\":%s}", output);
  *response = give(answer);
  free(answer);
  free(output);
  free(verb);
  free(what);
  return S_OK;
}

#else

static int passes(const struct object *one, const char *query) {
  char wanted[256], has[256];
  print_id(&one->id, has);
  if (field(query, "ID", wanted, sizeof wanted) && _stricmp(wanted, has)) return 0;
  if (field(query, "Name", wanted, sizeof wanted) && (!field(one->json, "Name", has, sizeof has) || strcmp(wanted, has))) return 0;
  if (field(query, "VirtualNetwork", wanted, sizeof wanted) &&
      (!field(one->json, "HostComputeNetwork", has, sizeof has) || _stricmp(wanted, has)))
    return 0;
  return 1;
}

static HRESULT enumerate(enum kind kind, const char *function, LPCWSTR query, LPWSTR *ids, LPWSTR *error) {
  char *asked = narrow(query), *list, id[40];
  size_t count = 0;
  struct object *one;
  HRESULT code;
  if (error) *error = NULL;
  EnterCriticalSection(&lock);
  for (one = objects; one; one = one->next) count++;
  list = malloc(count * 42 + 3);
  strcpy(list, "[");
  for (one = objects; one; one = one->next) {
    if (one->kind != kind || !passes(one, asked)) continue;
    print_id(&one->id, id);
    sprintf(list + strlen(list), "%s\"%s\"", list[1] ? "," : "", id);
  }
  strcat(list, "]");
  code = refused(function);
  note(function, NULL, "query", asked, code);
  LeaveCriticalSection(&lock);
  if (!code) *ids = give(list);
  free(list);
  free(asked);
  return code;
}

/* A handle is the id that it was opened with. */
static HRESULT open_object(enum kind kind, const char *function, const GUID *id, void **handle, LPWSTR *error) {
  HRESULT code;
  if (error) *error = NULL;
  EnterCriticalSection(&lock);
  code = refused(function);
  if (!code && !find(kind, id)) code = MISSING[kind];
  if (!code) {
    *handle = malloc(sizeof *id);
    memcpy(*handle, id, sizeof *id);
  }
  note(function, id, NULL, NULL, code);
  LeaveCriticalSection(&lock);
  return code;
}

static HRESULT query_object(enum kind kind, const char *function, void *handle, LPWSTR *properties, LPWSTR *error) {
  struct object *one;
  HRESULT code;
  if (error) *error = NULL;
  EnterCriticalSection(&lock);
  one = find(kind, handle);
  code = refused(function);
  if (!code && !one) code = MISSING[kind];
  if (!code) *properties = give(one->json);
  note(function, handle, NULL, NULL, code);
  LeaveCriticalSection(&lock);
  return code;
}

static HRESULT close_object(const char *function, void *handle) {
  EnterCriticalSection(&lock);
  note(function, handle, NULL, NULL, S_OK);
  LeaveCriticalSection(&lock);
  free(handle);
  return S_OK;
}

static HRESULT delete_object(enum kind kind, const char *function, const GUID *id, LPWSTR *error) {
  HRESULT code;
  if (error) *error = NULL;
  EnterCriticalSection(&lock);
  code = refused(function);
  if (!code && !find(kind, id)) code = MISSING[kind];
  if (!code) drop(kind, id);
  note(function, id, NULL, NULL, code);
  LeaveCriticalSection(&lock);
  return code;
}

static HRESULT create_object(enum kind kind, const char *function, GUID *id, LPCWSTR settings, void **handle, LPWSTR *error) {
  static const unsigned heads[KINDS] = {0x0e000000, 0xe0000000, 0x1b000000};
  char *json = narrow(settings);
  unsigned number;
  HRESULT code;
  int i;
  if (error) *error = NULL;
  EnterCriticalSection(&lock);
  number = ++next_id;
  memset(id, 0, sizeof *id);
  id->Data1 = heads[kind];
  id->Data3 = 0x4000;
  id->Data4[0] = 0x80;
  for (i = 0; i < 4; i++) id->Data4[7 - i] = number >> (8 * i);
  code = refused(function);
  note(function, id, "settings", json, code);
  if (!code) {
    put(kind, id, stored(id, json));
    *handle = malloc(sizeof *id);
    memcpy(*handle, id, sizeof *id);
  }
  LeaveCriticalSection(&lock);
  free(json);
  return code;
}

#define FUNCTIONS(KIND, NAME)                                                                         \
  API HcnEnumerate##NAME##s(LPCWSTR query, LPWSTR *ids, LPWSTR *error) {                              \
    return enumerate(KIND, "HcnEnumerate" #NAME "s", query, ids, error);                              \
  }                                                                                                   \
  API HcnOpen##NAME(GUID *id, void **handle, LPWSTR *error) {                                         \
    return open_object(KIND, "HcnOpen" #NAME, id, handle, error);                                     \
  }                                                                                                   \
  API HcnQuery##NAME##Properties(void *handle, LPCWSTR query, LPWSTR *properties, LPWSTR *error) {    \
    (void)query;                                                                                      \
    return query_object(KIND, "HcnQuery" #NAME "Properties", handle, properties, error);              \
  }                                                                                                   \
  API HcnClose##NAME(void *handle) { return close_object("HcnClose" #NAME, handle); }                 \
  API HcnDelete##NAME(GUID *id, LPWSTR *error) { return delete_object(KIND, "HcnDelete" #NAME, id, error); }

FUNCTIONS(NETWORK, Network)
FUNCTIONS(ENDPOINT, Endpoint)
FUNCTIONS(LOADBALANCER, LoadBalancer)

/* Both programs name the network in the settings as well. */
API HcnCreateEndpoint(void *network, GUID *id, LPCWSTR settings, void **handle, LPWSTR *error) {
  (void)network;
  return create_object(ENDPOINT, "HcnCreateEndpoint", id, settings, handle, error);
}

API HcnCreateLoadBalancer(GUID *id, LPCWSTR settings, void **handle, LPWSTR *error) {
  return create_object(LOADBALANCER, "HcnCreateLoadBalancer", id, settings, handle, error);
}

API HcnModifyLoadBalancer(void *handle, LPCWSTR settings, LPWSTR *error) {
  char *json = narrow(settings);
  HRESULT code;
  if (error) *error = NULL;
  EnterCriticalSection(&lock);
  code = refused("HcnModifyLoadBalancer");
  if (!code && !find(LOADBALANCER, handle)) code = MISSING[LOADBALANCER];
  note("HcnModifyLoadBalancer", handle, "settings", json, code);
  if (!code) put(LOADBALANCER, handle, stored(handle, json));
  LeaveCriticalSection(&lock);
  free(json);
  return code;
}

#endif
