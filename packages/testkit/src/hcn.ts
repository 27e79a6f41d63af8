/** HCN's objects: those of a node before any service proxy came, and all of them as lines. */

import { familyOf } from "@fairlead/base";

/** HCN's objects of a case, before any service proxy came. */
export function hcnOf({ network }: { readonly network: "L2Bridge" | "Overlay" }) {
  const id = "0e000000-0000-4000-8000-0000000000aa";
  const remote = { DestinationPrefix: "10.244.2.0/24", IsolationId: 4096, ProviderAddress: "192.0.2.2" };
  const pod = (last: number, name: string, addresses: readonly string[]) => ({
    ID: `e0000000-0000-4000-8000-0000000000b${last}`,
    Name: name,
    HostComputeNetwork: id,
    IpConfigurations: addresses.map((IpAddress) => ({
      IpAddress,
      PrefixLength: familyOf(IpAddress) === "IPv4" ? 24 : 64,
    })),
    MacAddress: `00-15-5d-00-01-0${last}`,
  });
  return {
    networks: [
      {
        ID: id,
        Name: network === "Overlay" ? "vxlan0" : "cbr0",
        Type: network,
        Policies: [
          {
            Type: "RemoteSubnetRoute",
            Settings: { ...remote, DistributedRouterMacAddress: "00-15-5d-00-00-02" },
          },
        ],
      },
    ],
    endpoints: [
      pod(1, "pod-a", ["10.244.1.10", "fd00:244:1::10"]),
      pod(2, "pod-b", ["10.244.1.11", "fd00:244:1::11"]),
      pod(3, "cbr0", ["10.244.1.2"]),
    ],
  };
}

interface HcnObjects {
  readonly endpoints: Iterable<HcnEndpointText>;
  readonly loadBalancers: Iterable<HcnBalancerText>;
}

interface HcnEndpointText {
  readonly ID: string;
  readonly IpConfigurations?: readonly { readonly IpAddress: string }[];
  readonly MacAddress?: string;
  readonly Flags?: number;
  readonly Policies?: readonly { readonly Settings: Readonly<Record<string, unknown>> }[];
}

export interface HcnBalancerText {
  readonly HostComputeEndpoints?: readonly string[];
  readonly SourceVIP?: string;
  readonly FrontendVIPs?: readonly string[];
  readonly PortMappings?: readonly HcnMappingText[];
  readonly Flags?: number;
}

export interface HcnMappingText {
  readonly Protocol?: number;
  readonly InternalPort?: number;
  readonly ExternalPort?: number;
  readonly DistributionType?: number;
  readonly Flags?: number;
}

/** HCN's objects as lines, sorted: endpoints that are not the case's own, and load balancers with their endpoints. */
export function describeHcn({ endpoints, loadBalancers }: HcnObjects): readonly string[] {
  const all = [...endpoints];
  const names = new Map(all.map((one) => [one.ID.toLowerCase(), addressOf(one)]));
  const own = new Set(hcnOf({ network: "L2Bridge" }).endpoints.map(({ ID }) => ID));
  return [
    ...all.filter(({ ID }) => !own.has(ID)).map(endpointLine),
    ...Array.from(loadBalancers, (one) => balancerLine(one, names)),
  ].sort();
}

function addressOf({ IpConfigurations = [] }: HcnEndpointText): string {
  return IpConfigurations[0]?.IpAddress ?? "";
}

function endpointLine(endpoint: HcnEndpointText): string {
  const { MacAddress = "", Flags = 0, Policies = [] } = endpoint;
  const provider = Policies.map(({ Settings }) => ` at ${String(Settings["ProviderAddress"])}`).join("");
  return `endpoint ${addressOf(endpoint)} flags ${Flags} mac ${MacAddress}${provider}`;
}

function balancerLine(balancer: HcnBalancerText, names: ReadonlyMap<string, string>): string {
  const { HostComputeEndpoints = [], SourceVIP, FrontendVIPs = [], PortMappings = [], Flags = 0 } = balancer;
  const [{ Protocol, InternalPort, ExternalPort, DistributionType = 0, Flags: mapping = 0 } = {}] = PortMappings;
  const to = HostComputeEndpoints.map((id) => names.get(id.toLowerCase()) ?? "gone").sort();
  const from = `${FrontendVIPs.join() || "*"} ${ExternalPort}/${Protocol}`;
  const how = [`flags ${Flags}`, `mapping ${mapping}`, ...(DistributionType === 0 ? [] : [`by ${DistributionType}`])];
  return `balancer ${from} to ${to.join()} port ${InternalPort} ${how.join(" ")}${SourceVIP ? ` from ${SourceVIP}` : ""}`;
}
