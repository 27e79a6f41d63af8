import { type AddressRange, addressRange, addressWords, inRange, prefixLengthOf } from "@fairlead/base";

/** A route as far as it says which interface a packet leaves by. */
export interface Route {
  /** Canonical CIDR; `0.0.0.0/0` and `::/0` are the default routes. */
  readonly cidr: string;
  /** The interface that packets leave by. */
  readonly outInterface: string;
  /** The kernel's preference among routes of one CIDR, the lowest first; default 0. */
  readonly metric?: number;
}

/**
 * `Environment.outInterface` from a routing table: the longest prefix, and of several the lowest metric. What no route
 * covers is unknown; rules of policy routing are not known.
 *
 * @throws Error for a route whose CIDR cannot be read
 */
export function routing(routes: Iterable<Route>): (destination: string) => string | undefined {
  const compiled = Array.from(routes, (route) => ({ ...route, range: addressRange(route.cidr), bits: bitsOf(route) }));
  compiled.sort((a, b) => b.bits - a.bits || (a.metric ?? 0) - (b.metric ?? 0));
  const known = new Map<string, string | undefined>();
  return (destination) => {
    if (!known.has(destination)) known.set(destination, find(compiled, destination));
    return known.get(destination);
  };
}

function bitsOf({ cidr }: Route): number {
  return prefixLengthOf(cidr);
}

function find(routes: readonly (Route & { readonly range: AddressRange })[], destination: string): string | undefined {
  const words = addressWords(destination);
  return routes.find(({ range }) => inRange(range, words))?.outInterface;
}

/**
 * The routes that `ip -json route show` prints, of either family.
 *
 * @throws SyntaxError when it is not JSON
 */
export function parseRoutes(json: string, family: "IPv4" | "IPv6"): readonly Route[] {
  const parsed: unknown = json.trim() === "" ? [] : JSON.parse(json);
  return (Array.isArray(parsed) ? parsed : []).flatMap(({ dst, dev, metric, nexthops }: Printed) => {
    const [hop] = Array.isArray(nexthops) ? nexthops : [];
    const outInterface = typeof dev === "string" ? dev : hop?.dev;
    if (typeof dst !== "string" || typeof outInterface !== "string") return [];
    const everywhere = family === "IPv4" ? "0.0.0.0/0" : "::/0";
    return [
      { cidr: dst === "default" ? everywhere : dst, outInterface, ...(typeof metric === "number" && { metric }) },
    ];
  });
}

interface Printed {
  readonly dst?: unknown;
  readonly dev?: unknown;
  readonly metric?: unknown;
  readonly nexthops?: readonly { readonly dev?: string }[];
}
