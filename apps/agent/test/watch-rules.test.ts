import { iptablesFacts } from "@fairlead/backend-iptables";
import { settled, VirtualClock } from "@fairlead/base/testing";
import type { IptablesPort } from "@fairlead/netfilter";
import { expect, test } from "vitest";
import { watchRules } from "../src/modes/mode.ts";

test("rules that went are looked for twice a second, in both families, until the agent ends", async () => {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const gone = new Set<string>();
  const portOf = (family: string): Pick<IptablesPort, "lost"> => ({
    async lost(chains) {
      asked.push(`${family}: ${Object.keys(chains)}`);
      expect(chains.nat).toEqual(expect.arrayContaining(["PREROUTING", "KUBE-SERVICES"]));
      return gone.delete(family);
    },
  });
  const ports = new Map([["IPv4", portOf("IPv4")] as const, ["IPv6", portOf("IPv6")] as const]);
  let changed = 0;
  const stop = new AbortController();
  const watching = watchRules(ports, iptablesFacts, clock)({ changed: () => void changed++ }, stop.signal);
  await clock.advance(500);
  await settled();
  expect(asked).toEqual(["IPv4: nat,filter", "IPv6: nat,filter"]);
  expect(changed).toBe(0);
  gone.add("IPv6");
  await clock.advance(500);
  await settled();
  expect(changed).toBe(1);
  stop.abort();
  await watching;
});
