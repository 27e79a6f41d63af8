import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSysctl } from "@fairlead/kernel";
import { FakeSysctl } from "@fairlead/kernel/fake";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { conntrackSysctls, prepareConntrack } from "../src/conntrack-settings.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { configOf } from "./support/running-agent.ts";

describe("conntrack settings", () => {
  let dir = "";
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "fairlead-conntrack-"));
  });
  afterEach(() => rm(dir, { recursive: true }));

  const wanted = (flags: readonly string[], cores: number) =>
    Object.fromEntries(
      conntrackSysctls(configOf(flags).conntrack, cores).map(({ key, value }) => [key.slice(27), value]),
    );

  test("kube-proxy's defaults: entries by cores, time-outs of TCP, the rest as it is", () => {
    expect(wanted([], 8)).toEqual({ max: 262_144, tcp_timeout_established: 86_400, tcp_timeout_close_wait: 3_600 });
  });

  test("entries: at least the minimum, at most 2^20, and none of it with 0 per core", () => {
    expect(wanted([], 2)["max"]).toBe(131_072);
    expect(wanted([], 64)["max"]).toBe(1_048_576);
    expect(wanted(["--conntrack-max-per-core=0"], 8)["max"]).toBeUndefined();
  });

  test("everything that can be asked for", () => {
    const flags = ["--conntrack-tcp-be-liberal", "--conntrack-udp-timeout=30s", "--conntrack-udp-timeout-stream=2m"];
    const zeros = ["--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0"];
    expect(wanted([...flags, ...zeros], 1)).toEqual({
      max: 131_072,
      tcp_be_liberal: 1,
      udp_timeout: 30,
      udp_timeout_stream: 120,
    });
  });

  test("only what differs is written, and the buckets follow the entries", async () => {
    const keys = ["max", "tcp_timeout_established", "tcp_timeout_close_wait"].map(
      (name) => `net/netfilter/nf_conntrack_${name}`,
    );
    const [max = "", established = "", closeWait = ""] = keys;
    const sysctl = new FakeSysctl({ [max]: "65536", [established]: "432000", [closeWait]: "3600" });
    const hashSizeFile = join(dir, "hashsize");
    await writeFile(hashSizeFile, "16384\n");
    const log = recordedLog();
    await prepareConntrack(configOf([]).conntrack, sysctl, log, { cores: 8, hashSizeFile });
    expect(await sysctl.read(max)).toBe("262144");
    expect(await readFile(hashSizeFile, "utf8")).toBe("65536");
    expect(log.lines.map(({ fields }) => fields["before"])).toEqual(["65536", "432000"]);
  });

  test("a read-only /proc is one warning", async () => {
    const log = recordedLog();
    await prepareConntrack(configOf([]).conntrack, createSysctl(dir), log, {
      cores: 8,
      hashSizeFile: join(dir, "none"),
    });
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toMatchObject({ level: "warn" });
    expect(JSON.stringify(log.lines[0])).toContain("net.netfilter.nf_conntrack_max=262144");
  });
});
