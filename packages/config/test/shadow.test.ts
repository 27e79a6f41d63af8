import { describe, expect, test } from "vitest";
import { withMode } from "../src/index.ts";
import { configOf, errorsOf, parse, parseFile } from "./parse.ts";

describe("a shadow run", () => {
  test("is none unless asked for", () => {
    expect(configOf(parse([])).shadow).toBeUndefined();
    expect(configOf(parse(["--shadow=false"])).shadow).toBeUndefined();
  });

  test("keeps off kube-proxy's ports, and remembers nothing", () => {
    const { metricsBindAddress, healthzBindAddress, stateDir, shadow } = configOf(parse(["--shadow"]));
    expect({ metricsBindAddress, healthzBindAddress, stateDir, shadow }).toEqual({
      metricsBindAddress: { address: "127.0.0.1", port: 10_449 },
      healthzBindAddress: { address: "0.0.0.0", port: 10_456 },
      stateDir: "",
      shadow: { gracePeriodMs: 5_000 },
    });
    const others = configOf(parse(["--shadow", "--metrics-bind-address=127.0.0.1:9999"]));
    expect(others.metricsBindAddress).toEqual({ address: "127.0.0.1", port: 9_999 });
  });

  test("a difference lasts for three of kube-proxy's pauses, or as long as is said", () => {
    const grace = (...flags: string[]) => configOf(parse(["--shadow", ...flags])).shadow?.gracePeriodMs;
    expect(grace("--iptables-min-sync-period=10s")).toBe(30_000);
    expect(grace("--iptables-min-sync-period=10s", "--shadow-grace-period=20s")).toBe(20_000);
    expect(errorsOf(parse(["--shadow", "--shadow-grace-period=-1s"]))).toEqual([
      "--shadow-grace-period=-1s: must not be negative, such as 5s",
    ]);
  });

  test("a file says the same", () => {
    const file = parseFile(
      "mode: nftables\n---\napiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration\nshadow: true\nshadowGracePeriod: 1m0s",
    );
    expect(configOf(file).shadow).toEqual({ gracePeriodMs: 60_000 });
  });

  test.each([
    [["--shadow", "--proxy-mode=userspace"], /^--shadow=true: compares iptables, ipvs and nftables mode/],
    [["--shadow", "--cleanup"], /^--shadow=true: cannot be combined with --cleanup: a shadow run writes nothing/],
    [["--shadow", "--init-only"], /^--shadow=true: cannot be combined with --init-only: a shadow run writes nothing/],
  ])("%j is refused", (flags, reason) => {
    expect(errorsOf(parse(flags))).toEqual([expect.stringMatching(reason)]);
  });
});

test("the configuration for another mode: what nobody set follows the mode", () => {
  const config = configOf(parse(["--masquerade-all"]));
  expect(withMode(config, "nftables")).toMatchObject({ mode: "nftables", nodePortAddresses: ["primary"] });
  expect(withMode(config, "ipvs")).toMatchObject({
    mode: "ipvs",
    nodePortAddresses: ["all"],
    ipvs: { masqueradeAll: true },
  });
  const given = configOf(parse(["--nodeport-addresses=192.0.2.0/24"]));
  expect(withMode(given, "nftables").nodePortAddresses).toEqual(["192.0.2.0/24"]);
});
