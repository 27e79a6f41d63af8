import { describe, expect, test } from "vitest";
import { type AgentConfig, parseArguments } from "../src/index.ts";
import { configFile, configOf, FILE, parse } from "./parse.ts";

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
