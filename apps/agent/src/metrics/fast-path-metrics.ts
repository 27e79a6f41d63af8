import { Gauge } from "prom-client";
import type { MetricFactory } from "./registry.ts";

/** @param devices how many there are now */
export function addFastPathMetrics({ registry }: MetricFactory, devices: () => number): void {
  new Gauge({
    name: "fairlead_fast_path_devices",
    help: "Devices whose packets bypass rules once their connection is established; 0 without a fast path (nftables mode)",
    registers: [registry],
    collect() {
      this.set(devices());
    },
  });
}
