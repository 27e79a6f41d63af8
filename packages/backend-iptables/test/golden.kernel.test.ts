import { describe, expect } from "vitest";
import { kernelTest } from "./support/real-kernel.ts";
import { RecordingPort } from "./support/recording-port.ts";
import { differences, recordings, sync, TABLES } from "./support/recordings.ts";

describe.each(["nft", "legacy"] as const)("on the real kernel, %s", (variant) => {
  kernelTest("every recording as kube-proxy left it", async (kernel) => {
    // One after the other over what the one before has left: a full sync converges from any of them. What stays for
    // ever is the rule in kubelet's chain, which kube-proxy does not take back either.
    for (const recording of recordings) {
      const port = await kernel.open(recording.family, variant);
      await sync(port, recording, kernel.counters);
      const again = new RecordingPort(port);
      await sync(again, recording, kernel.counters);
      expect(again.payloads.join("").match(/^:KUBE-(?:SEP|SVC|SVL|EXT|FW)-.*$/gm), "chains written anew").toBe(null);
      const states = await Promise.all(TABLES.map(async (table) => [table, await port.save(table)] as const));
      expect(
        differences(recording, new Map(states), (_, chain) => chain !== "KUBE-FIREWALL"),
        `${recording.name} ${recording.family}`,
      ).toEqual([]);
    }
  });
});
