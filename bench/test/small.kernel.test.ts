import { DEFAULT_KUBERNETES, FOLLOWED_KUBERNETES, missingControlPlane } from "@fairlead/lab/control-plane/programs";
import { missingHere } from "@fairlead/lab/support/machine";
import { expect, test } from "vitest";
import { runBench } from "../src/measure/bench.ts";
import { rowsOf } from "../src/report/rows.ts";

const missing = (await missingHere()) ?? (await missingControlPlane(DEFAULT_KUBERNETES));

test.skipIf(missing !== undefined)(
  "a small benchmark runs to its end, on the real control plane and kernel",
  async () => {
    const size = { services: 5, endpoints: 3 };
    const counts = { runs: 1, changes: 3, idle: 0 };
    const options = {
      ...size,
      ...counts,
      mode: "iptables",
      variant: "legacy",
      patience: 600,
      kubernetes: DEFAULT_KUBERNETES,
      kubeProxyVersion: FOLLOWED_KUBERNETES,
    } as const;
    const { fairlead } = (await runBench({ ...options, output: "json" }, () => {}, { restMs: 1_000 })).proxies;
    expect(fairlead.runs).toHaveLength(1);
    for (const row of rowsOf(fairlead, undefined)) expect(row.fairlead, row.label).toBeGreaterThan(0);
  },
);
