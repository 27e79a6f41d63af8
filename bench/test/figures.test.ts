import { describe, expect, test } from "vitest";
import {
  busySecondsOf,
  bytesReceivedOf,
  cpuSecondsOf,
  exactCpuSecondsOf,
  memoryOf,
  ownSeconds,
} from "../src/measure/process-figures.ts";
import { median, quantile } from "../src/measure/result.ts";
import { childrenAmong, fullSyncTimeOf, klogTime } from "../src/proxy/running.ts";

describe("figures", () => {
  test("the median of an even number of values lies between the middle two", () => {
    expect(median([9, 1, 3])).toBe(3);
    expect(median([4, 1, 2, 9])).toBe(3);
  });

  test("a quantile is a value that was measured", () => {
    const values = Array.from({ length: 50 }, (_, index) => 50 - index);
    expect(quantile(values, 0.99)).toBe(50);
    expect(quantile(values, 0.5)).toBe(25);
    expect(quantile([7], 0.01)).toBe(7);
  });
});

describe("what the kernel says of a process", () => {
  test("CPU: its own and that of children that have ended, whatever its name", () => {
    const stat = `42 (a) b) S 1 42 42 0 -1 4194304 100 200 0 0 150 50 30 20 20 0 9 0 1000 0 0`;
    expect(cpuSecondsOf(stat)).toBe(2.5);
    expect(exactCpuSecondsOf(["1500000 9000000 7\n", "500000 0 1\n"], stat)).toBeCloseTo(0.502, 9);
  });

  test("CPU of a process with all that descend from it, and of the whole machine", () => {
    const stat = (pid: number, parent: number, ticks: number) =>
      `${pid} (x) S ${parent} 1 1 0 -1 0 0 0 0 0 ${ticks} 0 0 0 20 0 1 0 1000 0 0`;
    const stats = [stat(1, 0, 10_000), stat(7, 1, 100), stat(8, 7, 200), stat(9, 8, 300), stat(10, 1, 9000), ""];
    expect(ownSeconds(stats, 7)).toBe(6);
    expect(childrenAmong(stats, 1)).toEqual([7, 10]);
    expect(busySecondsOf("cpu  100 200 300 9999 8888 40 60 7777 0 0\ncpu0 1 1 1 1\n")).toBe(7);
  });

  test("memory in units of 1,024 bytes", () => {
    expect(memoryOf("Name:\tnode\nVmHWM:\t   2000 kB\nVmRSS:\t   1000 kB\n")).toEqual({ now: 1.024, peak: 2.048 });
  });

  test("bytes of one interface", () => {
    const table = "Inter-|   Receive\n face |bytes packets\n    lo: 10 1 0\n  eth0: 4711 5 0\n";
    expect(bytesReceivedOf(table, "eth0")).toBe(4711);
  });
});

test("full syncs of IPv4 alone are counted", () => {
  const name = "kubeproxy_sync_full_proxy_rules_duration_seconds";
  const metrics = `${name}_sum{ip_family="IPv6"} 9\n${name}_sum{ip_family="IPv4"} 0.25\n${name}_count{ip_family="IPv4"} 1\n`;
  expect(fullSyncTimeOf(metrics)).toBe(250);
  expect(() => fullSyncTimeOf("")).toThrow("no duration of full syncs");
});

test("a log line's time is local, to the microsecond", () => {
  expect(klogTime("1121 10:09:13.123456", 2026)).toBeCloseTo(new Date(2026, 10, 21, 10, 9, 13).getTime() + 123.456, 3);
});
