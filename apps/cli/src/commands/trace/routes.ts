import { errorText } from "@fairlead/base";
import { CommandError, type Runner } from "@fairlead/kernel";
import {
  type AskRoutes,
  parseRouteGets,
  type RouteAnswer,
  type RouteGet,
  type RouteQuery,
  routeGetLine,
} from "@fairlead/trace";

type Refused = Extract<RouteAnswer, { readonly kind: "refused" }>;

/** Asks a kernel for each routing decision, and says why there is no route where there is none. */
export function askRoutes(runner: Runner): AskRoutes {
  return async (queries) => {
    const gets = await routeGets(runner, queries);
    const answers = queries.map((query, at) => answerOf(runner, query, gets[at]));
    return Promise.all(answers);
  };
}

async function routeGets(runner: Runner, queries: readonly RouteQuery[]): Promise<readonly (RouteGet | string)[]> {
  const input = `${queries.map(routeGetLine).join("\n")}\n`;
  try {
    const { stdout, stderr } = await runner.run(["ip", "-json", "-force", "-batch", "-"], { input });
    return parseRouteGets(queries.length, stdout, stderr);
  } catch (error) {
    if (error instanceof CommandError && /^Command failed /m.test(error.stderr)) {
      return parseRouteGets(queries.length, error.stdout, error.stderr);
    }
    const reason = errorText(error);
    return queries.map(() => reason);
  }
}

/** @param get a text is why the kernel could not be asked */
async function answerOf(runner: Runner, query: RouteQuery, get: RouteGet | string | undefined): Promise<RouteAnswer> {
  if (get === undefined || typeof get === "string") return { kind: "unknown", problem: get ?? "no answer" };
  if (get.kind === "error") return errorAnswer(runner, query, get.message);
  if (get.kind === "unicast" && query.family === "IPv6" && query.inInterface !== undefined) {
    return (await ipv6Forwarding(runner, query.inInterface)) ?? get;
  }
  return get;
}

/** IPv6 has a route for what it does not forward (ip6_forward asks the settings later). */
async function ipv6Forwarding(runner: Runner, name: string): Promise<Refused | undefined> {
  const settings = ["net/ipv6/conf/all/forwarding", `net/ipv6/conf/${name}/force_forwarding`];
  const values = await Promise.all(settings.map((key) => readSetting(runner, key)));
  if (values[0] !== "0" || values[1] === "1") return undefined;
  return { kind: "refused", problem: "this node forwards nothing: net.ipv6.conf.all.forwarding is 0" };
}

const ICMP_ERRORS = {
  IPv4: { net: "icmp-net-unreachable", host: "icmp-host-unreachable", prohibited: "icmp-admin-prohibited" },
  IPv6: { net: "icmp6-no-route", host: "icmp6-addr-unreachable", prohibited: "icmp6-adm-prohibited" },
} as const;

/**
 * What the kernel's errors stand for: fib_props of net/ipv4/fib_semantics.c, ip_route_input_slow of net/ipv4/route.c.
 */
async function errorAnswer(runner: Runner, query: RouteQuery, message: string): Promise<RouteAnswer> {
  const { family, destination, inInterface } = query;
  const reported = ICMP_ERRORS[family];
  switch (message) {
    case "Network is unreachable":
      return { kind: "refused", problem: `no route to ${destination}`, rejectWith: reported.net };
    case "Permission denied":
      return { kind: "refused", problem: `a prohibit route to ${destination}`, rejectWith: reported.prohibited };
    case "No route to host":
      return (
        (await ipv4Forwarding(runner, query)) ?? {
          kind: "refused",
          problem: `an unreachable route to ${destination}`,
          rejectWith: reported.host,
        }
      );
    case "Invalid argument":
    case "Invalid cross-device link":
      if (inInterface !== undefined && (await hasOwnRoute(runner, query))) return badSource(runner, query, inInterface);
      return { kind: "refused", problem: `a blackhole route to ${destination}` };
    default:
      return { kind: "unknown", problem: `the kernel does not report the route to ${destination}: ${message}` };
  }
}

async function ipv4Forwarding(runner: Runner, { family, inInterface }: RouteQuery): Promise<Refused | undefined> {
  if (family === "IPv6" || inInterface === undefined) return undefined;
  const off = (await readSetting(runner, `net/ipv4/conf/${inInterface}/forwarding`)) === "0";
  const problem = `this node forwards nothing that comes in by ${inInterface}: net.ipv4.ip_forward (net.ipv4.conf.${inInterface}.forwarding) is 0`;
  return off ? { kind: "refused", problem } : undefined;
}

/** Whether the destination has a route at all: then it is the source that is refused. */
async function hasOwnRoute(runner: Runner, { family, destination, mark, protocol }: RouteQuery): Promise<boolean> {
  const [get] = await routeGets(runner, [{ family, destination, mark, protocol }]);
  return typeof get === "object" && get.kind !== "error";
}

/** __fib_validate_source: the higher one of two settings counts. */
async function badSource(runner: Runner, { source }: RouteQuery, name: string): Promise<Refused> {
  const settings = ["all", name].map((of) => readSetting(runner, `net/ipv4/conf/${of}/rp_filter`));
  const filter = Math.max(...(await Promise.all(settings)).map(Number));
  const why = filter > 0 ? `rp_filter is ${filter}, and answers do not go out there` : "it cannot come from there";
  return { kind: "refused", problem: `the source ${source} is refused on ${name}: ${why}` };
}

/** Undefined where it is not there. */
async function readSetting(runner: Runner, key: string): Promise<string | undefined> {
  try {
    return (await runner.run(["cat", `/proc/sys/${key}`])).stdout.trim();
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}
