import type { Report } from "../report.ts";
import type { ServiceMetricsSettings } from "../types.ts";
import type { ConfigInput } from "./input.ts";

const ALL = "*";
const MAX_SERIES = 2_000;
/** A label of RFC 1123, as names of namespaces are. */
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Undefined: no namespace is named. */
export function resolveServiceMetrics(
  { fairlead, options }: ConfigInput,
  report: Report,
): ServiceMetricsSettings | undefined {
  const { namespaces = [], maxSeries = MAX_SERIES } = fairlead.serviceMetrics;
  for (const [index, name] of namespaces.entries()) {
    if (name === ALL || NAMESPACE.test(name)) continue;
    report.error(`serviceMetrics.namespaces[${index}]`, "must be the name of a namespace, or * for all", name);
  }
  if (namespaces.length === 0) return undefined;
  if (options.userspaceOnly) {
    report.error("serviceMetrics.namespaces", "are read from connection tracking, which --userspace-only does not use");
  }
  return { namespaces: namespaces.includes(ALL) ? "all" : [...new Set(namespaces)], maxSeries };
}
