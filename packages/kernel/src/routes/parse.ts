import { isObject } from "@fairlead/base";
import { type MarkRule, ROUTE_PROTOCOL, type RouteEntry, type TableRoute } from "./routes.ts";

/** What `ip -N -json route show` prints, of unicast routes whose link is up. */
export function parseRoutes(json: string): readonly TableRoute[] {
  return listIn(json).flatMap((printed) => {
    const { type, dst, table, metric, prefsrc, nexthops } = printed;
    if (typeof dst !== "string" || (type !== undefined && type !== "unicast" && type !== "1")) return [];
    const common = {
      destination: dst,
      table: Number(table ?? 0),
      metric: Number(metric ?? 0),
      ...(typeof prefsrc === "string" && { source: prefsrc }),
    };
    const hops = Array.isArray(nexthops) ? nexthops.filter(isObject) : [printed];
    return hops.flatMap((hop) => {
      const place = hopOf(hop);
      return place === undefined ? [] : [{ ...common, ...place }];
    });
  });
}

function hopOf(hop: Readonly<Record<string, unknown>>): Omit<RouteEntry, "destination" | "metric"> | undefined {
  const { dev, gateway, via } = hop;
  const flags: readonly unknown[] = Array.isArray(hop["flags"]) ? hop["flags"] : [];
  // A name that is more than one word for `ip` cannot be written.
  if (typeof dev !== "string" || !/^[\w.:@-]+$/.test(dev)) return undefined;
  if (flags.includes("dead") || flags.includes("linkdown")) return undefined;
  const other = isObject(via) && typeof via["host"] === "string" ? `inet6 ${via["host"]}` : undefined;
  const next = typeof gateway === "string" ? gateway : other;
  return {
    interface: dev,
    ...(next !== undefined && { gateway: next }),
    ...(flags.includes("onlink") && { onLink: true as const }),
  };
}

/** What `ip -N -json rule show` prints, of Fairlead's. */
export function parseRules(json: string): readonly MarkRule[] {
  return listIn(json).flatMap(({ priority, fwmark, fwmask, table, protocol }) => {
    if (String(protocol) !== String(ROUTE_PROTOCOL) || typeof fwmark !== "string") return [];
    const mask = typeof fwmask === "string" ? Number(fwmask) : 0xffff_ffff;
    return [{ priority: Number(priority), mark: Number(fwmark), mask, table: Number(table) }];
  });
}

function listIn(json: string): readonly Readonly<Record<string, unknown>>[] {
  const parsed: unknown = json.trim() === "" ? [] : JSON.parse(json);
  return Array.isArray(parsed) ? parsed.filter(isObject) : [];
}
