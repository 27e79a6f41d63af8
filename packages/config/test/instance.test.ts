import { describe, expect, test } from "vitest";
import { configFile, configOf, errorsOf, FILE, parse, parseFile } from "./parse.ts";

const NAME = "--service-proxy-name=edge";

describe("an agent with a service proxy name", () => {
  test("has ports, a folder and a mode of its own, and leaves what is the whole node's", () => {
    const config = configOf(parse([NAME]));
    expect(config).toMatchObject({
      serviceProxyName: "edge",
      mode: "nftables",
      nodePortAddresses: ["primary"],
      stateDir: "/run/fairlead/instances/edge",
      healthzBindAddress: { address: "0.0.0.0", port: 10_356 },
      metricsBindAddress: { address: "127.0.0.1", port: 10_349 },
      conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeoutMs: 0, tcpCloseWaitTimeoutMs: 0 },
    });
    expect(configOf(parse([]))).toMatchObject({ serviceProxyName: "", mode: "iptables", stateDir: "/run/fairlead" });
  });

  test("what is said counts; a port that is left out is its own", () => {
    const flags = [
      "--metrics-bind-address=192.0.2.1",
      "--healthz-bind-address=[::]:1234",
      "--state-dir=/var/lib/fairlead",
    ];
    const config = configOf(parse([NAME, ...flags, "--conntrack-min=5"]));
    expect(config.metricsBindAddress).toEqual({ address: "192.0.2.1", port: 10_349 });
    expect(config.healthzBindAddress).toEqual({ address: "::", port: 1234 });
    expect(config.stateDir).toBe("/var/lib/fairlead/instances/edge");
    expect(config.conntrack.min).toBe(5);
  });

  test("files say the same; the flag counts with one", () => {
    const fairlead = ["---", "apiVersion: fairlead.dev/v1alpha1", "kind: FairleadConfiguration"];
    const file = configOf(parseFile("mode: nftables", ...fairlead, "serviceProxyName: edge"));
    const flag = configOf(parse([NAME, `--config=${FILE}`], configFile("mode: nftables")));
    expect(file.serviceProxyName).toBe("edge");
    expect(flag).toMatchObject({ serviceProxyName: "edge", healthzBindAddress: { port: 10_356 } });
  });

  test.each([
    [
      "--proxy-mode=iptables",
      /^--proxy-mode=iptables: cannot run alongside .* --service-proxy-name requires: .* kube-proxy.*; use nftables$/,
    ],
    ["--proxy-mode=ipvs", /^--proxy-mode=ipvs: .* device \(kube-ipvs0\) as kube-proxy; use nftables$/],
    ["--proxy-mode=userspace", /^--proxy-mode=userspace: .* without --userspace-only; use nftables$/],
  ])("%s is refused with the reason", (mode, expected) => {
    expect(errorsOf(parse([NAME, mode]))).toEqual([expect.stringMatching(expected)]);
  });

  test("pods' secondary networks are for an instance with a name, in nftables mode", () => {
    const NETWORK = "--service-network";
    expect(configOf(parse([NAME, NETWORK])).serviceNetwork).toBe(true);
    expect(configOf(parse([NAME])).serviceNetwork).toBe(false);
    expect(errorsOf(parse([NETWORK]))).toEqual([
      expect.stringMatching(/^--service-network=true: needs serviceProxyName \(--service-proxy-name\)/),
    ]);
    expect(errorsOf(parse([NAME, NETWORK, "--proxy-mode=iptables"]))).toEqual([
      expect.stringMatching(/^--proxy-mode=iptables: .*use nftables$/),
    ]);
    expect(errorsOf(parse([NAME, NETWORK, "--proxy-mode=userspace", "--userspace-only"]))).toEqual([
      expect.stringMatching(/^--proxy-mode=userspace: .* --service-network requires; use nftables$/),
    ]);
  });

  test("local ports can run alongside anything", () => {
    expect(configOf(parse([NAME, "--proxy-mode=userspace", "--userspace-only"])).userspace.only).toBe(true);
  });

  test("names are values of labels: they become a table's and a folder's name", () => {
    for (const name of ["..", "a/b", "-a", "a-", ".a", "a".repeat(64), "a b", "ä"]) {
      const [error] = errorsOf(parse([`--service-proxy-name=${name}`]));
      expect(error, name).toMatch(/^--service-proxy-name=.*: must be the value of a label: up to 63 letters/);
    }
    for (const name of ["a", "A-b_c.d", "9", "a".repeat(63)]) {
      expect(configOf(parse([`--service-proxy-name=${name}`])).serviceProxyName).toBe(name);
    }
  });
});
