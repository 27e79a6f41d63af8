import type { RouteAnswer, RouteQuery } from "./environment.ts";

/**
 * The query as a line for `ip -json -force -batch -` (RTM_GETROUTE): the kernel itself decides, with its rules of
 * policy routing, blackholes, forwarding settings and rp_filter.
 */
export function routeGetLine({ destination, source, inInterface, mark, protocol, sport, dport }: RouteQuery): string {
  const ports = PORTED.has(protocol) && sport !== undefined && dport !== undefined;
  return [
    `route get ${destination}`,
    ...(source === undefined ? [] : [`from ${source}`]),
    ...(inInterface === undefined ? [] : [`iif ${inInterface}`]),
    ...(mark === 0 ? [] : [`mark ${mark}`]),
    ...(ports ? [`ipproto ${protocol} sport ${sport} dport ${dport}`] : []),
  ].join(" ");
}

/** Protocols that the kernel takes in a query (rtm_getroute_parse_ip_proto). */
const PORTED: ReadonlySet<string> = new Set(["tcp", "udp"]);

/** What the kernel said to a query: a route, or the text of an error. */
export type RouteGet =
  | Extract<RouteAnswer, { readonly kind: "local" | "unicast" }>
  | { readonly kind: "error"; readonly message: string };

/**
 * What `ip -json -force -batch -` printed, for each of so many lines.
 *
 * @throws SyntaxError when standard output is not JSON
 */
export function parseRouteGets(lines: number, stdout: string, stderr: string): readonly RouteGet[] {
  const errors = errorsByLine(stderr);
  const printed = stdout.split("\n").filter((line) => line.trim() !== "");
  return Array.from({ length: lines }, (_, at): RouteGet => {
    const message = errors.get(at + 1);
    if (message !== undefined) return { kind: "error", message };
    return routeIn(JSON.parse(printed.shift() ?? "[]"));
  });
}

/** Each line that fails has its complaint, and below it `Command failed -:LINE`. */
function errorsByLine(stderr: string): ReadonlyMap<number, string> {
  const errors = new Map<number, string>();
  let complaint = "";
  for (const line of stderr.split("\n")) {
    const failed = /^Command failed \S+:(\d+)$/.exec(line)?.[1];
    if (failed === undefined) complaint = line === "" ? complaint : line.replace(/^RTNETLINK answers: /, "");
    else errors.set(Number(failed), complaint);
  }
  return errors;
}

function routeIn(printed: unknown): RouteGet {
  const [route] = Array.isArray(printed) ? printed : [];
  const { type, dev }: { readonly type?: unknown; readonly dev?: unknown } = route ?? {};
  if (type === "local") return { kind: "local" };
  if (typeof dev === "string") return { kind: "unicast", outInterface: dev };
  return { kind: "error", message: "no route was printed" };
}
