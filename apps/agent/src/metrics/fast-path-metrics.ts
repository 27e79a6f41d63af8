import { Gauge } from "prom-client";
import type { FastPath } from "../modes/fast-path/open.ts";
import type { MetricFactory } from "./registry.ts";

/** @param fastPath undefined: it is not configured, or disabled */
export function addFastPathMetrics({ registry }: MetricFactory, fastPath: Pick<FastPath, "devices"> | undefined): void {
  new Gauge({
    name: "fairlead_fast_path_devices",
    help: "Devices whose packets bypass rules once their connection is established; 0 without a fast path (nftables mode)",
    registers: [registry],
    collect() {
      this.set(fastPath?.devices.size ?? 0);
    },
  });
}
