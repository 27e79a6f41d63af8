import { growthPlot, type Series } from "./growth-plot.ts";

/** The plots that docs/performance.md shows, by file name. */
export function plots(growth: readonly Series[]): Readonly<Record<string, string>> {
  if (growth.length === 0) return {};
  return {
    "growth-change.svg": growthPlot(
      "one endpoint change until the kernel has it",
      growth,
      (point) => point.endpointChange.ms,
    ),
    "growth-start.svg": growthPlot("start to first complete sync", growth, (point) => point.firstSync.ms),
  };
}
