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
const meaning = (config: AgentConfig) => {
  const { mode, clusterCIDRs, detectLocal, nodePortAddresses, multiCNI, serviceProxyName, serviceNetwork } = config;
  const { masqueradeAll, localhostNodePorts } = config.iptables;
  const node = [mode, clusterCIDRs, detectLocal, nodePortAddresses, serviceProxyName, serviceNetwork];
  return [...node, multiCNI, masqueradeAll, localhostNodePorts, config.features];
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

const replyViaFile = (mode: string, ...lines: readonly string[]) =>
  parseFile(
    [`mode: ${mode}`, "---", "apiVersion: fairlead.dev/v1alpha1", "kind: FairleadConfiguration", ...lines].join("\n"),
  );
const DEFAULTS = { markMask: 0x3000, rulePriority: 200, firstTable: 17_000 };

describe("replyVia", () => {
  test("is off unless asked for", () => {
    expect(configOf(parse([])).replyVia).toBeUndefined();
  });

  test.each(["iptables", "nftables", "ipvs"])("is auto or a list in %s mode", (mode) => {
    expect(configOf(replyViaFile(mode, "replyVia: auto")).replyVia).toEqual({ uplinks: "auto", ...DEFAULTS });
    const list = "replyVia: [{interface: eth1}, {interface: eth2, table: 102}]";
    expect(configOf(replyViaFile(mode, list)).replyVia?.uplinks).toEqual([
      { interface: "eth1" },
      { interface: "eth2", table: 102 },
    ]);
  });

  test("marks, priority and tables are settings", () => {
    const routing = "replyRouting: {markMask: 0xff0000, rulePriority: 90, firstTable: 500, unusedMarks: [calico]}";
    const { replyVia } = configOf(replyViaFile("nftables", "replyVia: auto", routing));
    expect(replyVia).toEqual({ uplinks: "auto", markMask: 0xff_0000, rulePriority: 90, firstTable: 500 });
  });

  test.each([
    ["0x4000", "0x4000: must not contain bits of masqueradeBit (0x4000)"],
    ["0x9000", "0x9000: must not contain bits of kubelet's drop bit (0x8000): 0x8000 is both"],
    ["0x10000", "0x10000: must not contain bits of calico (0xffff0000): 0x10000 is both; where no calico runs"],
    ["0x80", "0x80: must not contain bits of istio (0xfff): 0x80 is both"],
    ["0x1200", "0x1200: must not contain bits of cilium (0xf00): 0x200 is both"],
  ])("the mask %s is refused", (mask, message) => {
    const errors = errorsOf(replyViaFile("iptables", "replyVia: auto", `replyRouting: {markMask: ${mask}}`));
    expect(errors).toContainEqual(expect.stringContaining(`replyRouting.markMask: ${message}`));
  });

  test.each([
    ["rulePriority: 99", "rulePriority: 99: must not be a priority of calico's routing rules (99)"],
    [
      "rulePriority: 100",
      "rulePriority: 100: must not be a priority of cilium's routing rules (1, 9, 10, 20, 100, 109, 110, 111, 112)",
    ],
    [
      "firstTable: 2003",
      "firstTable: 2003: must not lead to tables of cilium (2004, 2005): those of replyVia are 2003 to 2004",
    ],
    ["firstTable: 2005", "firstTable: 2005: must not lead to tables of cilium"],
  ])("%s is another program's", (setting, message) => {
    expect(errorsOf(replyViaFile("iptables", "replyVia: auto", `replyRouting: {${setting}}`))).toEqual([
      expect.stringContaining(`replyRouting.${message}`),
    ]);
  });

  test.each(["rulePriority: 101", "firstTable: 2002", "firstTable: 2006"])("%s is free", (setting) => {
    const routing = `replyRouting: {${setting}}`;
    expect(configOf(replyViaFile("iptables", "replyVia: auto", routing)).replyVia).toBeDefined();
  });

  test("the masquerade bit is the mode's", () => {
    const settings = "nftables: {masqueradeBit: 12}";
    expect(errorsOf(replyViaFile(`nftables\n${settings}`, "replyVia: auto"))).toContainEqual(
      expect.stringContaining("0x3000: must not contain bits of masqueradeBit (0x1000)"),
    );
  });

  test.each([
    ["userspace", "replyVia: auto", "replyVia: auto: works in iptables, nftables and ipvs mode"],
    ["nftables", "replyVia: auto\nnftables: {fastPath: {devices: [eth0]}}", "cannot be combined with"],
    ["nftables", "replyVia: yes please", "replyVia: yes please: must be auto, or a list of {interface: NAME}"],
    ["nftables", "replyVia: []", "replyVia: []: must name an interface, or be auto"],
    ["nftables", "replyVia: [{interface: eth 1}]", "replyVia[0].interface: eth 1: must be the name of an interface"],
    ["nftables", "replyVia: [{interface: a}, {interface: a}]", "replyVia[1].interface: a: must be listed once"],
    ["nftables", "replyVia: [{interface: a}, {interface: b}, {interface: c}]", "markMask 0x3000 is enough for 2"],
    ["nftables", "replyVia: [{interface: a, table: 254}]", "replyVia[0].table: 254: must be a table of yours"],
    ["nftables", "replyVia: auto\nserviceProxyName: edge", "is for the node's first proxy"],
  ])("%s, %s is an error", (mode, setting, message) => {
    expect(errorsOf(replyViaFile(mode, setting))).toContainEqual(expect.stringContaining(message));
  });
});

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
