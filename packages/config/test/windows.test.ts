import { describe, expect, test } from "vitest";
import { type ParseEnvironment, type ParseResult, parseArguments } from "../src/index.ts";

const WINDOWS: Partial<ParseEnvironment> = { platform: "windows", stateDir: "C:\\ProgramData\\fairlead" };

function parse(argv: readonly string[], environment: Partial<ParseEnvironment> = WINDOWS, file = ""): ParseResult {
  return parseArguments(argv, { readFile: () => file, version: "0.0.0", ...environment });
}

function configOf(result: ParseResult) {
  if (result.kind !== "run") throw new Error(JSON.stringify(result));
  return result.config;
}

function errorsOf(result: ParseResult): readonly string[] {
  if (result.kind !== "invalid") throw new Error(JSON.stringify(result));
  return result.errors.map(({ field, message }) => `${field}: ${message}`);
}

describe("on Windows", () => {
  test("kernelspace is the mode where none is said", () => {
    expect(configOf(parse([]))).toMatchObject({
      mode: "kernelspace",
      stateDir: "C:\\ProgramData\\fairlead",
      kernelspace: {
        networkName: "",
        sourceVip: "",
        enableDSR: false,
        rootHnsEndpointName: "cbr0",
        forwardHealthCheckVip: false,
        overlay: true,
        syncPeriodMs: 30_000,
      },
    });
  });

  test("the flags of kube-proxy for Windows", () => {
    const argv = [
      "--network-name=cbr0",
      "--source-vip=10.244.1.2",
      "--enable-dsr",
      "--root-hnsendpoint-name=root",
      "--forward-healthcheck-vip=true",
      "--feature-gates=WinOverlay=false",
      "--iptables-sync-period=1m",
    ];
    expect(configOf(parse(argv)).kernelspace).toMatchObject({
      networkName: "cbr0",
      sourceVip: "10.244.1.2",
      enableDSR: true,
      rootHnsEndpointName: "root",
      forwardHealthCheckVip: true,
      overlay: false,
      syncPeriodMs: 60_000,
    });
    expect(configOf(parse(argv)).flags).toMatchObject({ "network-name": "cbr0" });
  });

  test("a file", () => {
    const file =
      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: kernelspace\n" +
      "winkernel: {networkName: vxlan0, sourceVip: 10.244.1.2, enableDSR: true}\n";
    const result = parse(["--config=c"], WINDOWS, file);
    expect(configOf(result)).toMatchObject({ mode: "kernelspace", kernelspace: { networkName: "vxlan0" } });
    expect(result).toMatchObject({ warnings: [] });
  });

  test.each([
    [["--proxy-mode=iptables"], "--proxy-mode: only works on Linux; must be kernelspace, or empty for it"],
    [["--enable-dsr", "--feature-gates=WinDSR=false"], "--enable-dsr: needs the feature gate WinDSR=true"],
    [["--source-vip=vip"], "--source-vip: must be an IP address, such as 10.244.1.2"],
    [
      ["--windows-service"],
      "--windows-service: the agent does not speak to the service manager; run it by WinSW or NSSM",
    ],
    [["--iptables-sync-period=0s"], "--iptables-sync-period: must be greater than 0, such as 30s"],
    [
      ["--reset-stale-tcp"],
      "--reset-stale-tcp: works in iptables, nftables and ipvs mode; in kernelspace mode Windows lets no program end the connections of a load balancer",
    ],
    [
      ["--service-proxy-name=second"],
      "mode: cannot run alongside another proxy, which --service-proxy-name requires: it programs the load balancers of the node, as kube-proxy does; use nftables",
    ],
  ])("%s is refused", (argv, error) => {
    expect(errorsOf(parse(argv)).map((one) => one.replace(/^--proxy-mode: cannot/, "mode: cannot"))).toContain(error);
  });
});

test.each([
  [
    ["--nodeport-addresses=primary"],
    ["--nodeport-addresses: ignored; Windows serves node ports at all addresses of the node"],
  ],
  [["--nodeport-addresses=all"], []],
  [[], []],
])("%s: what has no effect is said", (argv, warnings) => {
  expect(parse(argv)).toMatchObject({ kind: "run", warnings });
});

test("on Linux kernelspace mode is refused, with what to use", () => {
  expect(errorsOf(parse(["--proxy-mode=kernelspace"], {}))).toEqual([
    "--proxy-mode: only works on Windows; must be iptables, ipvs, nftables or userspace, or empty for iptables",
  ]);
});

test("for another node any mode is read", () => {
  expect(configOf(parse(["--proxy-mode=kernelspace", "--network-name=cbr0"], { platform: "any" })).mode).toBe(
    "kernelspace",
  );
  expect(configOf(parse([], { platform: "any" })).mode).toBe("iptables");
});
