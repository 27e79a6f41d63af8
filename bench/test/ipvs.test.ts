import { expect, test } from "vitest";
import { movedAddress, podAddress } from "../src/cluster/objects.ts";
import { countProcesses } from "../src/ipvs/accounting.ts";
import { comparison, kernelDifferences } from "../src/ipvs/table.ts";
import type { ProxyMeasurement, WorkMeasurement } from "../src/measure/ipvs-figures.ts";
import type { ProxyName } from "../src/proxy/measured-proxy.ts";

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

test("no address of an endpoint is another's, or one that comes later", () => {
  const addresses = new Set([
    ...Array.from({ length: 20_000 }, (_, number) => podAddress(number)),
    ...Array.from({ length: 1_000 }, (_, number) => movedAddress(number)),
  ]);
  expect(addresses.size).toBe(21_000);
});

const step = (seconds: number, ipset: number): WorkMeasurement => ({
  seconds,
  cpuSeconds: seconds / 2,
  processes: { ipset },
});

function measured(proxy: ProxyName, seconds: number, kernel: readonly string[]): ProxyMeasurement {
  const one = step(seconds, 3);
  return { proxy, fullSync: one, restart: one, changes: [one, one], firstLocal: one, residentMiB: 80, kernel };
}

test("medians side by side, and their ratio", () => {
  const table = comparison([measured("kube-proxy", 10, []), measured("fairlead", 1, []), measured("fairlead", 2, [])]);
  expect(table).toContain(
    "| full sync on an empty kernel | 10.00 s, 5.00 s CPU, 3 processes | 1.50 s, 0.75 s CPU, 3 processes | 0.15 |",
  );
});

test("without kube-proxy its column is empty", () => {
  expect(comparison([measured("fairlead", 1, [])])).toContain("| resident memory |  | 80 MiB |");
});

test("what the kernels hold differently is listed", () => {
  const results = [measured("kube-proxy", 1, ["add A 1", "add A 2"]), measured("fairlead", 1, ["add A 2", "add A 3"])];
  expect(kernelDifferences(results)).toEqual(["only after kube-proxy: add A 1", "only after Fairlead: add A 3"]);
});
