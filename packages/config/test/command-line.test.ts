import { describe, expect, test } from "vitest";
import { FLAGS } from "../src/flags.ts";
import { configOf, FILE, parse, parseFile, warningsOf } from "./parse.ts";

const at = (address: string, port: number) => ({ address, port });

describe("forms that pflag takes", () => {
  test.each([[["-v", "5"]], [["-v=5"]], [["-v5"]], [["--v=5"]], [["--v", "5"]], [["--v=1", "-v=5"]]])("%j", (argv) => {
    expect(configOf(parse(argv)).logging.verbosity).toBe(5);
  });

  test.each([
    [["--masquerade-all"], true],
    [["--masquerade-all=true"], true],
    [["--masquerade-all=T"], true],
    [["--masquerade_all"], true],
    [["--masquerade-all=false"], false],
    [["--masquerade-all=0"], false],
    [["--masquerade-all", "--masquerade-all=false"], false],
    [["--masquerade-all="], false],
  ])("%j is %s", (argv, masqueradeAll) => {
    expect(configOf(parse(argv)).iptables.masqueradeAll).toBe(masqueradeAll);
  });

  test.each([
    [["--exclude-cluster-cidr=10.244.0.0/16,10.16.0.0/16", "--exclude_cluster_cidr", "fd00:244::/48"]],
    [["--exclude-cluster-cidr", "10.244.0.0/16, 10.16.0.0/16,", "--exclude-cluster-cidr=fd00:244::/48"]],
  ])("%j", (argv) => {
    const wanted = ["10.244.0.0/16", "10.16.0.0/16", "fd00:244::/48"];
    expect(configOf(parse(argv)).multiCNI.excludeClusterCIDRs).toEqual(wanted);
  });

  test.each([
    ["1.2.3.4:80", "1.2.3.4", 80],
    ["1.2.3.4", "1.2.3.4", 10_256],
    ["[1.2.3.4]:80", "1.2.3.4", 80],
    ["[FD00:0::1]:80", "fd00::1", 80],
    ["fd00::1:80", "fd00::1:80", 10_256],
    ["", "0.0.0.0", 10_256],
  ])("--healthz-bind-address=%s", (text, address, port) => {
    expect(configOf(parse([`--healthz-bind-address=${text}`])).healthzBindAddress).toEqual({ address, port });
  });

  test.each([
    [["--healthz-bind-address=192.0.2.1", "--healthz-port=4000"], { healthzBindAddress: at("192.0.2.1", 4_000) }],
    [["--healthz-bind-address=fd00::1", "--healthz-port=4000"], { healthzBindAddress: at("fd00::1", 4_000) }],
    [["--healthz-bind-address=192.0.2.1:80", "--healthz-port=4000"], { healthzBindAddress: at("192.0.2.1", 80) }],
    [["--healthz-port=4000"], { healthzBindAddress: at("0.0.0.0", 10_256) }],
    [["--metrics-bind-address=192.0.2.1", "--metrics-port=4000"], { metricsBindAddress: at("192.0.2.1", 4_000) }],
    [["--metrics-bind-address=[::1]:80", "--metrics-port=4000"], { metricsBindAddress: at("::1", 80) }],
    [["--metrics-port=4000"], { metricsBindAddress: at("127.0.0.1", 10_249) }],
    [["--healthz-port=-1"], { healthzBindAddress: at("0.0.0.0", 10_256) }],
  ])("%j: the deprecated ports complete an address that has none", (argv, wanted) => {
    expect(configOf(parse(argv))).toMatchObject(wanted);
  });

  test("a health server is turned off by --healthz-port=0 only, which is deprecated", () => {
    const result = parse(["--healthz-port=0"]);
    expect(configOf(result)).not.toHaveProperty("healthzBindAddress");
    expect(warningsOf(result)).toEqual(["--healthz-port is deprecated: use --healthz-bind-address"]);
  });

  test("an argument that looks like a flag is a value where one is due", () => {
    expect(configOf(parse(["--state-dir", "--v"])).stateDir).toBe("--v");
  });

  test("empty arguments, as templates leave them, are nothing; empty values are defaults", () => {
    const result = parse(["", "--bind-address=", "--cluster-cidr=", "--proxy-mode", "", "--iptables-sync-period=", ""]);
    expect(configOf(result)).toMatchObject({ mode: "iptables", clusterCIDRs: [], iptables: { syncPeriodMs: 30_000 } });
    expect(configOf(result).detectLocal).toEqual({ kind: "none" });
  });
});

describe("wrong usage", () => {
  test.each([
    [["--bogus"], "unknown flag '--bogus'"],
    [["--proxy-mod=ipvs"], "unknown flag '--proxy-mod=ipvs' (did you mean --proxy-mode?)"],
    [["-x"], "unknown flag '-x'"],
    [["--config"], "option '--config <string>' argument missing"],
    [["-v"], "option '-v, --v <Level>' argument missing"],
    [["run"], "too many arguments. Expected 0 arguments but got 1: run."],
    [["--masquerade-all", "true"], "too many arguments. Expected 0 arguments but got 1: true."],
    [["--", "--v=5"], "too many arguments. Expected 0 arguments but got 1: --v=5."],
  ])("%j", (argv, reason) => {
    expect(parse(argv)).toEqual({
      kind: "usage-error",
      message: `${reason}\n\nUsage: fairlead-proxy [flags]\nAll flags: fairlead-proxy --help\n`,
    });
  });
});

describe("--help and --version", () => {
  test("--help names every flag that may be set, and none of Windows", () => {
    const result = parse(["--v=5", "--help"]);
    if (result.kind !== "help") throw new Error(result.kind);
    for (const [name, { row }] of FLAGS) {
      const shown = row.group !== "windows" && row.deprecated === undefined;
      expect(new RegExp(`^  (-v, )?--${name}( |$)`, "m").test(result.text), name).toBe(shown);
    }
    expect(Math.max(...result.text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(110);
  });

  test("every flag's help is a sentence", () => {
    for (const { help, row } of FLAGS.values()) if (row.group !== "windows") expect(help).toMatch(/\S\.$/);
  });

  test.each([["--version"], ["--version=true"]])("%s", (flag) => {
    expect(parse([flag])).toEqual({ kind: "version", text: "Fairlead v1.2.3\n" });
  });

  test("--version=raw says more, in JSON", () => {
    const result = parse(["--version=raw"]);
    if (result.kind !== "version") throw new Error(result.kind);
    expect(JSON.parse(result.text)).toMatchObject({ fairlead: "v1.2.3", kubeProxy: "v1.37" });
  });

  test("another version is only a warning", () => {
    expect(parse(["--version=false"])).toMatchObject({ kind: "run", warnings: [] });
    expect(warningsOf(parse(["--version=v9.9.9"]))).toHaveLength(1);
  });

  test("--version wins over a file that cannot be read", () => {
    expect(parse(["--config=/nowhere", "--version"]).kind).toBe("version");
  });
});

describe("actions, in kube-proxy's order", () => {
  test.each([
    [[], "run"],
    [["--init-only"], "init-only"],
    [["--init-only", "--cleanup"], "cleanup"],
    [["--init-only", "--cleanup", "--write-config-to=/x"], "write-config"],
    [["--cleanup=false"], "run"],
  ])("%j: %s", (argv, kind) => {
    expect(configOf(parse(argv)).action.kind).toBe(kind);
  });
});

describe("flags with --config", () => {
  const file = [
    "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration",
    "hostnameOverride: from-file\nmode: ipvs\nlogging: {verbosity: 1, format: json}",
    "---\napiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration",
    "multiCNI: {excludeClusterCIDRs: [10.16.0.0/16], mixedServices: skip, ownershipAnnotation: false}",
  ].join("\n");

  test("kube-proxy's are ignored, with one line; the log's, the host's name and Fairlead's own count", () => {
    const argv = ["--cluster-cidr=10.0.0.0/8", "--proxy-mode=nftables", "--hostname-override=from-flag", "-v=4"];
    const own = ["--manifests=/m", "--state-dir=/s", "--master=https://192.0.2.2:6443", "--mixed-services=all"];
    const result = parse([`--config=${FILE}`, ...argv, ...own], file);
    expect(configOf(result)).toMatchObject({
      mode: "ipvs",
      clusterCIDRs: [],
      hostnameOverride: "from-flag",
      logging: { verbosity: 4, format: "json" },
      manifests: "/m",
      stateDir: "/s",
      client: { master: "https://192.0.2.2:6443" },
      multiCNI: { excludeClusterCIDRs: ["10.16.0.0/16"], mixedServices: "all", ownershipAnnotation: false },
    });
    expect(warningsOf(result)).toEqual([
      "--config is set; ignoring these flags: --cluster-cidr, --proxy-mode",
      `--hostname-override overrides ${FILE}: hostnameOverride (from-file)`,
      `--v overrides ${FILE}: logging.verbosity (1)`,
      `--mixed-services overrides ${FILE}: multiCNI.mixedServices (skip)`,
    ]);
  });

  test("a list of flags replaces the file's", () => {
    const result = parse([`--config=${FILE}`, "--exclude-cluster-cidr=10.244.0.0/16"], file);
    expect(configOf(result).multiCNI.excludeClusterCIDRs).toEqual(["10.244.0.0/16"]);
  });

  test("what an ignored flag says wrong is not looked at, but its form is", () => {
    expect(parse([`--config=${FILE}`, "--oom-score-adj=5000", "--cluster-cidr=pods"], file).kind).toBe("run");
    expect(parse([`--config=${FILE}`, "--oom-score-adj=none"], file).kind).toBe("invalid");
  });

  test("a zero of ipvs.minSyncPeriod is zero in a file, the flag's default is a second", () => {
    expect(configOf(parseFile("mode: ipvs")).ipvs.minSyncPeriodMs).toBe(0);
    expect(configOf(parse(["--proxy-mode=ipvs"])).ipvs.minSyncPeriodMs).toBe(1_000);
    expect(configOf(parse(["--proxy-mode=ipvs", "--ipvs-min-sync-period=0"])).ipvs.minSyncPeriodMs).toBe(0);
    expect(configOf(parse(["--iptables-min-sync-period=0s"])).iptables.minSyncPeriodMs).toBe(0);
  });
});
