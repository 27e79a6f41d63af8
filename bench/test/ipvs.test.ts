import { expect, test } from "vitest";
import { countProcesses } from "../src/ipvs/accounting.ts";
import { addressesOf, newAddress } from "../src/ipvs/load.ts";
import type { Measured, ProxyName, Step } from "../src/ipvs/settings.ts";
import { comparison, kernelDifferences } from "../src/ipvs/table.ts";

function record(name: string, flag: number): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.writeUInt8(flag, 0);
  bytes.write(name, 36, "latin1");
  return bytes;
}

test("processes are counted by name, forks without a program of their own are not", () => {
  const records = [record("ipset", 0), record("iptables-restor", 2), record("node", 1), record("ipset", 0)];
  expect(countProcesses(Buffer.concat(records))).toEqual({ ipset: 2, "iptables-restor": 1 });
});

test("no address of the load is another's, or one that comes later", () => {
  const all = Array.from({ length: 2_000 }, (_, index) => addressesOf(index, 10)).flat();
  const addresses = new Set([
    ...all.map(({ address }) => address),
    ...Array.from({ length: 1_000 }, (_, n) => newAddress(n)),
  ]);
  expect(addresses.size).toBe(21_000);
});

const step = (seconds: number, ipset: number): Step => ({ seconds, cpuSeconds: seconds / 2, processes: { ipset } });

function measured(proxy: ProxyName, seconds: number, kernel: readonly string[]): Measured {
  const one = step(seconds, 3);
  return { proxy, fullSync: one, restart: one, changes: [one, one], firstLocal: one, residentMiB: 80, kernel };
}

test("medians side by side, and their ratio", () => {
  const table = comparison([measured("kube-proxy", 10, []), measured("fairlead", 1, []), measured("fairlead", 2, [])]);
  expect(table).toContain(
    "| full sync on an empty kernel | 10.00 s, 5.00 s CPU, 3 processes | 2.00 s, 1.00 s CPU, 3 processes | 0.20 |",
  );
});

test("what the kernels hold differently is told", () => {
  const results = [measured("kube-proxy", 1, ["add A 1", "add A 2"]), measured("fairlead", 1, ["add A 2", "add A 3"])];
  expect(kernelDifferences(results)).toEqual(["after kube-proxy alone: add A 1", "after Fairlead alone: add A 3"]);
});
