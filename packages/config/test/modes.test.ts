import { describe, expect, test } from "vitest";
import { type AgentConfig, parseArguments, withMode } from "../src/index.ts";
import { configFile, configOf, errorsOf, FILE, parse, parseFile } from "./parse.ts";

const file = (...lines: readonly string[]) =>
  parseFile("mode: nftables", "---", "apiVersion: fairlead.dev/v1alpha1", "kind: FairleadConfiguration", ...lines);
const devices = (list: string) => file("nftables:", `  fastPath: {devices: ${list}}`);

test("no connection bypasses rules unless the file says so", () => {
  expect(configOf(parseFile("mode: nftables")).nftables.fastPath).toBeUndefined();
  expect(configOf(devices('["cali*", eth0, eth0]')).nftables.fastPath).toEqual({ devices: ["cali*", "eth0"] });
  expect(configOf(devices("auto")).nftables.fastPath).toEqual({ devices: "auto" });
});

test.each([
  ["[]", "must name at least one device, such as eth0 or cali*, or be auto"],
  ["[lo]", "lo must not be among them: its packets are not forwarded"],
  ['["a b"]', '"a b" must be a device name of at most 15 characters, such as eth0 or cali*'],
  ["[abcdefghijklmnop]", '"abcdefghijklmnop" must be a device name of at most 15 characters, such as eth0 or cali*'],
  ["eth0", "must be auto, or a list of device names, such as cali*"],
])("devices: %s is an error", (list, error) => {
  const [first = ""] = errorsOf(devices(list));
  expect(first).toContain(": nftables.fastPath.devices: ");
  expect(first.endsWith(`: ${error}`)).toBe(true);
});

describe("reset-stale-tcp", () => {
  test("is off unless asked for", () => {
    expect(configOf(parse([])).resetStaleTCP).toBe(false);
    expect(configOf(parse(["--reset-stale-tcp=false", "--proxy-mode=userspace"])).resetStaleTCP).toBe(false);
  });

  test.each(["iptables", "nftables", "ipvs"])("by flag in %s mode", (mode) => {
    expect(configOf(parse([`--proxy-mode=${mode}`, "--reset-stale-tcp"])).resetStaleTCP).toBe(true);
  });

  test("by file", () => {
    const file = "---\napiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration\nresetStaleTCP: true";
    expect(configOf(parseFile(`mode: nftables\n${file}`)).resetStaleTCP).toBe(true);
    expect(errorsOf(parseFile(`mode: userspace\n${file}`))).toEqual([
      expect.stringContaining("resetStaleTCP: true: works in iptables, nftables and ipvs mode; in userspace mode"),
    ]);
  });

  test("is refused in userspace mode", () => {
    expect(errorsOf(parse(["--proxy-mode=userspace", "--reset-stale-tcp"]))).toEqual([
      expect.stringContaining(
        "--reset-stale-tcp=true: works in iptables, nftables and ipvs mode; in userspace mode the agent itself terminates the connections",
      ),
    ]);
  });
});

const MODE = "--proxy-mode=userspace";

describe("userspace mode", () => {
  test("its defaults are kube-proxy's of v1.25, where that had any", () => {
    const { mode, portRange, userspace } = configOf(parse([MODE]));
    expect({ mode, portRange }).toEqual({ mode: "userspace", portRange: undefined });
    expect(userspace).toMatchObject({
      only: false,
      udpIdleTimeoutMs: 250,
      tcpIdleTimeoutMs: 86_400_000,
      maxSockets: 32_000,
      maxSocketsPerService: 16_000,
    });
  });

  test("flags and files say the same", () => {
    const flags = parse([
      MODE,
      "--proxy-port-range=10000+100",
      "--udp-timeout=2s",
      "--userspace-tcp-idle-timeout=0",
      "--userspace-max-sockets=500",
      "--userspace-max-sockets-per-service=50",
    ]);
    const file = parseFile(
      "mode: userspace",
      "portRange: 10000-10100",
      "udpIdleTimeout: 2s",
      "---",
      "apiVersion: fairlead.dev/v1alpha1",
      "kind: FairleadConfiguration",
      "userspace: {tcpIdleTimeout: 0s, maxSockets: 500, maxSocketsPerService: 50}",
    );
    expect(configOf(flags).userspace).toEqual(configOf(file).userspace);
    expect(configOf(flags).portRange).toEqual(configOf(file).portRange);
    expect(configOf(file).userspace).toMatchObject({ udpIdleTimeoutMs: 2_000, tcpIdleTimeoutMs: 0, maxSockets: 500 });
  });

  test("what is wrong is named", () => {
    expect(errorsOf(parse([MODE, "--udp-timeout=-1s", "--userspace-max-sockets=1"]))).toEqual([
      expect.stringMatching(/^--userspace-max-sockets=1: must be a whole number/),
      "--udp-timeout=-1s: must be greater than 0, such as 250ms",
    ]);
    expect(errorsOf(parse(["--userspace-only"]))).toEqual(["--userspace-only=true: needs --proxy-mode=userspace"]);
  });
});

/** As /configz serves it. */
const served = ({ kubeProxyConfiguration, fairleadConfiguration }: AgentConfig) =>
  [kubeProxyConfiguration, fairleadConfiguration].map((one) => JSON.stringify(one)).join("\n---\n");

/** What decides about packets. */
const meaning = ({
  mode,
  clusterCIDRs,
  detectLocal,
  nodePortAddresses,
  multiCNI,
  serviceProxyName,
  serviceNetwork,
  ...more
}: AgentConfig) => {
  const { masqueradeAll, localhostNodePorts } = more.iptables;
  return {
    mode,
    clusterCIDRs,
    detectLocal,
    nodePortAddresses,
    multiCNI,
    serviceProxyName,
    serviceNetwork,
    masqueradeAll,
    localhostNodePorts,
    features: more.features,
  };
};

describe("what is served means the same when it is read again", () => {
  test.each([
    [[]],
    [["--proxy-mode=ipvs", "--cluster-cidr=10.144.0.0/16,fd00:144::/64", "--masquerade-all"]],
    [["--proxy-mode=nftables", "--nodeport-addresses=primary,localhost", "--detect-local-mode=NodeCIDR"]],
    [["--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true", "--proxy-mode=nftables"]],
    [["--exclude-cluster-cidr=10.244.0.0/16", "--mixed-services=skip", "--excluded-frontends=cluster-ip"]],
    [["--exclude-cidrs-from=kube-ovn-subnets", "--ownership-annotation=false", "--cidr-removal-delay=1m"]],
    [["--service-proxy-name=edge", "--proxy-mode=nftables", "--service-network"]],
  ])("%s", (argv) => {
    const config = configOf(parse(argv));
    expect(meaning(configOf(parse([`--config=${FILE}`], served(config))))).toEqual(meaning(config));
  });

  test("the flags of this command line are named", () => {
    expect(configOf(parse(["--proxy-mode=ipvs", "--masquerade-all"])).commandLine).toEqual({
      "proxy-mode": "ipvs",
      "masquerade-all": "true",
    });
  });
});

describe("overrides", () => {
  const withOverrides = (text: string, ...overrides: readonly string[]) =>
    parseArguments([`--config=${FILE}`], { readFile: () => text, version: "1.2.3", overrides });

  test("count over a file, also flags that count with a file not otherwise", () => {
    const file = configFile("mode: ipvs", "clusterCIDR: 10.144.0.0/16");
    const { mode, clusterCIDRs, provenance } = configOf(withOverrides(file, "--proxy-mode=nftables"));
    expect({ mode, clusterCIDRs }).toEqual({ mode: "nftables", clusterCIDRs: ["10.144.0.0/16"] });
    expect(provenance).toMatchObject({ mode: "--proxy-mode", clusterCIDR: `${FILE}: clusterCIDR` });
  });

  test("are named where they are wrong", () => {
    const result = withOverrides(configFile(), "--oom-score-adj=5000");
    expect(result).toMatchObject({ kind: "invalid", errors: [{ field: "--oom-score-adj", value: "5000" }] });
    expect(withOverrides(configFile(), "--nonsense")).toMatchObject({ kind: "usage-error" });
  });
});

describe("what the agent did as a shadow is fairlead verify --watch: ignored, it would program the node", () => {
  test.each(["--shadow", "--shadow=true", "--shadow-grace-period=5s"])("%s", (flag) => {
    expect(parse([flag])).toMatchObject({
      kind: "usage-error",
      message: expect.stringMatching(/^unknown flag .*run: fairlead verify --watch/),
    });
  });

  test("shadow: true", () => {
    const file = parseFile(
      "mode: nftables\n---\napiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration\nshadow: true",
    );
    expect(errorsOf(file)).toEqual([expect.stringMatching(/shadow.*run: fairlead verify --watch$/)]);
  });
});

test("the configuration for another mode: what is not set follows the mode", () => {
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
