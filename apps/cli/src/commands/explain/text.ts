import { SLICES_MANAGER, socketText } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { EndpointFate, Membership, Treatment } from "@fairlead/core";
import type {
  FamilyExplanation,
  FrontendExplanation,
  LostFrontend,
  Policies,
  PortExplanation,
  ServiceExplanation,
  ServiceNotice,
} from "@fairlead/inspect";
import { type OutcomeShares, type PacketFinding, waysText } from "@fairlead/inspect";
import type { Style } from "../../frame/style.ts";
import { tableText } from "../../output/table.ts";
import type { FamilyAgreement } from "./family-agreement.ts";

/** An explanation for people. */
export function explanationText(
  { service, node, zone, mode, notices, families }: ServiceExplanation,
  agreements: readonly FamilyAgreement[],
  instance: Pick<AgentConfig, "serviceNetwork" | "serviceProxyName">,
  style: Style,
): string {
  const place = zone === undefined ? node : `${node} (zone ${zone})`;
  const title = `${style.bold(service)} on ${place}, ${mode} mode\n`;
  const parts = families.map((one) => {
    const agreement = agreements.find(({ family }) => family === one.family);
    return familyText(one, style) + (agreement === undefined ? "" : agreementText(agreement, style));
  });
  return [title + instanceText(instance) + notices.map((one) => noticeText(one, style)).join(""), ...parts].join("\n");
}

function noticeText({ object, field, value, reason, effect }: ServiceNotice, style: Style): string {
  const sign = { lost: style.bad("traffic lost"), open: style.bad("open"), note: style.warn("note") }[effect];
  return `${sign}: ${[object, field, value, reason].filter(Boolean).join(" ")}\n`;
}

/** Nothing of the first proxy, which most services belong to. */
function instanceText({ serviceProxyName, serviceNetwork }: Parameters<typeof explanationText>[2]): string {
  if (serviceProxyName === "") return "";
  const slices = `; endpoints on pods' secondary networks, from EndpointSlices of ${SLICES_MANAGER} only`;
  return `Served by instance ${serviceProxyName}${serviceNetwork ? slices : ""}\n`;
}

function familyText(explained: FamilyExplanation, style: Style): string {
  const { family, ownership, remembered, podNetwork, policies, ports } = explained;
  const owner = { ours: style.good, mixed: style.warn, foreign: style.dim }[ownership.ownership](ownership.ownership);
  const memory = remembered === undefined ? "" : `; remembered as ${remembered}`;
  const head = `${family}: ${owner}, ${ownership.why}${memory}\n${placeText(podNetwork)}${policiesText(policies)}\n`;
  return [head, ...ports.map((port) => portText(port, style))].join("\n");
}

function placeText(network: FamilyExplanation["podNetwork"]): string {
  if (network === undefined) return "";
  const { kind, name, addresses, why } = network;
  const at =
    addresses === undefined
      ? ""
      : `, at ${addresses.slice(0, 3).join(", ")}${addresses.length > 3 ? ` and ${addresses.length - 3} more` : ""}`;
  return `Its pods are in ${kind} ${name}${at} (${why})\n`;
}

function policiesText(policies: Policies): string {
  const { internalTrafficPolicy, externalTrafficPolicy, affinitySeconds, loadBalancerSourceRanges } = policies;
  const { nodePortAddresses, healthCheck } = policies;
  const parts = [
    `internal ${internalTrafficPolicy}`,
    `external ${externalTrafficPolicy}`,
    ...(affinitySeconds === undefined ? [] : [`ClientIP affinity for ${affinitySeconds} s`]),
    ...(loadBalancerSourceRanges.length === 0 ? [] : [`load balancer for ${loadBalancerSourceRanges.join(", ")} only`]),
    ...(nodePortAddresses === undefined ? [] : [nodePortsText(nodePortAddresses)]),
    ...(healthCheck === undefined
      ? []
      : [`health check on ${healthCheck.port}: ${healthCheck.localEndpoints} ready here`]),
  ];
  return `Traffic policies: ${parts.join("; ")}`;
}

function nodePortsText({ addresses, why }: NonNullable<Policies["nodePortAddresses"]>): string {
  if (addresses.length > 0) return `node ports on ${addresses.join(", ")} only`;
  return `node ports on no address${why === undefined ? "" : ` (${why})`}`;
}

function portText(port: PortExplanation, style: Style): string {
  const { name, protocol, frontends, lost, endpoints } = port;
  const title = style.bold(`${protocol}${name === "" ? "" : ` port ${name}`}`);
  const counts = { cluster: members(endpoints, "cluster"), local: members(endpoints, "local") };
  const rows = [
    ...frontends.map((one) => frontendRow(one, counts)),
    ...loopbackRows(port, counts),
    ...lost.map(lostRow),
  ];
  const served = indent(tableText(["frontend", "pods", "node", "outside"], rows));
  const head = ["endpoint", "node", "cluster set", "local set"];
  const ends = indent(
    tableText(
      head,
      endpoints.map((one) => endpointRow(one, style)),
    ),
  );
  return `${title}\n${served}${distributionText(port)}${fastPathText(port)}${endpoints.length === 0 ? "  no endpoints\n" : ends}`;
}

type Counts = Readonly<Record<"cluster" | "local", number>>;

function members(endpoints: readonly EndpointFate[], set: "cluster" | "local"): number {
  return endpoints.filter((one) => one[set].in).length;
}

function frontendRow(frontend: FrontendExplanation, counts: Counts): string[] {
  const { kind, address, port, policy, treatments, excludedClients } = frontend;
  const { pod, node, outside } = treatments;
  const name = `${kind} ${address === undefined ? port : socketText(address, port)}${policy === "Cluster" ? "" : ` (${policy})`}`;
  return [
    `${name}${exceptionText(excludedClients)}`,
    ...[pod, node, outside].map((treatment) => treatmentText(treatment, counts)),
  ];
}

function distributionText({ distribution }: PortExplanation): string {
  return distribution === undefined ? "" : `  traffic distribution ${distribution.asked}: ${distribution.why}\n`;
}

function fastPathText({ fastPath }: PortExplanation): string {
  return fastPath === undefined ? "" : `  fast path: ${fastPath.used ? "" : "no, "}${fastPath.why}\n`;
}

/** Only the node itself reaches its loopback addresses. */
function loopbackRows({ onLoopback }: PortExplanation, counts: Counts): string[][] {
  if (onLoopback === undefined) return [];
  const what =
    onLoopback === "refused" ? onLoopback : `${counts[onLoopback.relayedTo]} ${onLoopback.relayedTo}, relayed`;
  return [["the node port on loopback", "-", what, "-"]];
}

/** `, but for clients in 10.244.0.0/16`: their own network serves these. */
function exceptionText(cidrs: readonly string[] = []): string {
  if (cidrs.length === 0) return "";
  const more = cidrs.length > 1 ? ` and ${cidrs.length - 1} more` : "";
  return `, but for clients in ${cidrs[0]}${more}`;
}

function treatmentText(treatment: Treatment, counts: Counts): string {
  if (treatment.verdict === "leave") return "left to the other network";
  if (treatment.verdict !== "proxy") return treatment.verdict;
  return `${counts[treatment.set]} ${treatment.set}${treatment.masquerade ? ", masqueraded" : ""}`;
}

function lostRow({ kind, address, port, heldBy }: LostFrontend): string[] {
  const name = `${kind} ${address === undefined ? port : socketText(address, port)}`;
  const holder = heldBy === undefined ? "not served here" : `held by ${heldBy}`;
  return [name, holder, holder, holder];
}

function endpointRow({ address, port, nodeName, cluster, local }: EndpointFate, style: Style): string[] {
  return [socketText(address, port), nodeName ?? "-", membershipText(cluster, style), membershipText(local, style)];
}

function membershipText({ in: inside, why }: Membership, style: Style): string {
  return inside ? `${style.good("in")}: ${why}` : `${style.dim("out")}: ${why}`;
}

function agreementText({ agreement }: FamilyAgreement, style: Style): string {
  const { checked, disagreements, unknown } = agreement;
  const kinds = `${checked} ${checked === 1 ? "kind" : "kinds"} of packets traced`;
  const open = unknown.length === 0 ? "" : `; ${style.warn("unknown")} for ${unknown.length} of them`;
  const lines = [...disagreements, ...unknown].map((one) => `  ${findingText(one)}\n`).join("");
  if (disagreements.length > 0) {
    const differs = `${style.bad("does something else")} with ${disagreements.length} of ${kinds}`;
    return `\nKernel: ${differs}${open}\n${lines}`;
  }
  const agrees = unknown.length < checked || checked === 0 ? `${style.good("agrees")}, ${kinds}` : kinds;
  return `\nKernel: ${agrees}${open}\n${lines}`;
}

function findingText({ frontend, source, wanted, found, problem }: PacketFinding): string {
  const to = `${frontend.kind} ${socketText(frontend.address, frontend.port)}`;
  const seen = found === undefined ? `unknown: ${problem}` : `goes to ${waysText(found)}`;
  return `${source.class} (${source.address}) → ${to}: ${seen}; wanted: ${waysText(wanted)}`;
}

/** A finding as JSON. */
export function findingData({ frontend, source, wanted, found, problem }: PacketFinding) {
  const ways = (of: OutcomeShares) => Object.fromEntries(of);
  return {
    frontend,
    source,
    wanted: ways(wanted),
    ...(found === undefined ? { problem: problem ?? "" } : { found: ways(found) }),
  };
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}
