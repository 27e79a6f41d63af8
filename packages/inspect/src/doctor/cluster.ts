/** The doctor's rows about the cluster: what nodes decide, what Services ask for, and the API server. */

import { type Problem, serviceOfProblem } from "@fairlead/core";
import { LEAVING_RULES, type OwnershipRow } from "@fairlead/intake";
import type { AgentDecisions, IsolatedService, NetworksFacts, NodeFacts } from "./facts.ts";
import { line, lines, listed, named } from "./table.ts";

const called = lines(({ networks }) => (networks ? [networks.called] : []), "Services that the API server calls", [
  {
    bad: "answer-calls",
    when: ({ unanswered }) => unanswered.length > 0,
    found: ({ unanswered }) => {
      const these = unanswered.map(({ service, objects }) => `${service} (${objects.slice(0, 2).join(", ")})`);
      return `left unanswered: ${listed(these, "; ")}`;
    },
    advice:
      "set excludedFrontends: excluded-clients, or annotate them fairlead.dev/ownership: ours: they are left to another network, and " +
      "calls from nodes are not answered here",
  },
  { when: ({ unlisted }) => unlisted.length === 0, found: "each is answered on nodes" },
  {
    unknown: "list-calls",
    found: ({ unlisted }) => `may not list ${unlisted.join(", ")}`,
    advice: "ask with --kubeconfig of an operator who may",
  },
]);

type Answered = Exclude<AgentDecisions, { readonly problem: string }>;

const answered = (agents: NetworksFacts["agents"]): readonly Answered[] =>
  "problem" in agents ? [] : agents.flatMap((one) => ("problem" in one ? [] : [one]));

/** What most nodes decide about a service is what the others are compared with. */
function differing(agents: readonly Answered[]): readonly string[] {
  const rows = agents.flatMap(({ node, services }) => services.map((row) => ({ node, row })));
  const withEndpoints = rows.filter(({ row }) => row.ownEndpoints + row.excludedEndpoints > 0);
  const byService = Map.groupBy(withEndpoints, ({ row }) => `${row.service} ${row.ipFamily}`);
  const found = [...byService].flatMap(([service, these]) => {
    const common = mostCommon(these.map(({ row }) => row.ownership));
    const others = these.filter(({ row }) => row.ownership !== common);
    return others.map(({ node, row }) => ({ node, text: `${service} ${row.ownership}, ${common} elsewhere` }));
  });
  const byNode = Map.groupBy(found, ({ node }) => node);
  return Array.from(
    byNode,
    ([node, its]) =>
      `${node}: ${listed(
        its.map(({ text }) => text),
        "; ",
      )}`,
  );
}

function mostCommon(owners: readonly OwnershipRow["ownership"][]): OwnershipRow["ownership"] | undefined {
  const counted = [...Map.groupBy(owners, (owner) => owner)];
  return counted.sort(([a, as], [b, bs]) => bs.length - as.length || (a < b ? -1 : 1))[0]?.[0];
}

const decisions = lines(
  ({ networks }) => {
    if (networks === undefined) return [];
    const { agents } = networks;
    const answers = answered(agents);
    const silent = "problem" in agents ? [] : agents.filter((one) => "problem" in one).map(({ node }) => node);
    const none = "problem" in agents ? agents.problem : "no agent's pod is found";
    return [{ answers, silent, isNone: answers.length + silent.length === 0, none, differing: differing(answers) }];
  },
  "decisions of the nodes",
  [
    {
      unknown: "reach-agents",
      when: ({ isNone }) => isNone,
      found: ({ none }) => none,
      advice: "allow list of pods and create of pods/portforward, or ask with --kubeconfig of an operator",
    },
    {
      warning: "compare-decisions",
      when: ({ differing: nodes }) => nodes.length > 0,
      found: ({ differing: nodes }) => listed(nodes, "; "),
      advice:
        "wait for the removal delay, after which nodes that see the same objects decide the same; then compare versions, configurations and " +
        "fairlead ownership --on NODE",
    },
    {
      unknown: "look-at-agents",
      when: ({ silent }) => silent.length > 0,
      found: ({ silent, answers }) => `${listed(silent, "; ")}: no answer; the other ${answers.length} decide the same`,
      advice: "look at these agents with `fairlead status`",
    },
    { found: ({ answers }) => `${answers.length} decide the same` },
  ],
);

/** CIDRs that are in effect although no object defines them. */
const kept = lines(
  ({ networks }) => {
    const all = answered(networks?.agents ?? []).flatMap(({ node, cidrs }) => cidrs.map((cidr) => ({ ...cidr, node })));
    const found = all.filter((one) => one.kept === true);
    const byCIDR = Map.groupBy(found, ({ cidr, source }) => `${cidr} of ${source}`);
    const these = Array.from(
      byCIDR,
      ([cidr, on]) =>
        `${cidr} (${listed(
          on.map(({ node }) => node),
          "; ",
        )})`,
    );
    return these.length === 0 ? [] : [these];
  },
  "kept CIDRs",
  [
    {
      warning: "kept-cidrs",
      found: (these) => `no object defines them anymore: ${listed(these, "; ")}`,
      advice:
        "nothing, they end with the removal delay, or once their source can be read; fairlead ownership --forget CIDR ends them now",
    },
  ],
);

type VPCSubnet = NonNullable<Extract<NodeFacts["api"], { kind: "answers" }>["subnets"]>[number];

/** `VPC blue (Subnet blue-net 10.0.1.0/24): shop/api, shop/web` */
function byNetwork(services: readonly IsolatedService[], subnets: readonly VPCSubnet[]): string {
  const groups = Map.groupBy(services, ({ network: { kind, name } }) => `${kind} ${name}`);
  const texts = Array.from(groups, ([network, these]) => {
    const [first] = these;
    const own = first?.network.kind === "VPC" ? subnets.filter(({ vpc }) => vpc === first.network.name) : [];
    const where = own.length === 0 ? "" : ` (${named(own.map(({ name, cidr }) => `Subnet ${name} ${cidr}`))})`;
    return `${network}${where}: ${named([...new Set(these.map(({ service }) => service))].sort())}`;
  });
  return listed(texts, "; ");
}

/** Services whose pods nodes reach by no address that EndpointSlices have: they are their own network's to serve. */
const isolated = lines(
  ({ isolated: services = [], api }) => {
    const subnets = (api.kind === "answers" ? api.subnets : undefined) ?? [];
    return services.length === 0 ? [] : [{ services, served: services.filter(({ isServed }) => isServed), subnets }];
  },
  "Services in networks that nodes do not share",
  [
    {
      warning: "leave-isolated",
      when: ({ served }) => served.length > 0,
      found: ({ served, subnets }) => `served here, where no node can reach the pods: ${byNetwork(served, subnets)}`,
      advice: ({ served }) => {
        const rules = [...new Set(served.map(({ network }) => LEAVING_RULES[network.kind]))];
        return `add ${rules.join(" and ")} to multiCNI.serviceRules: what is served of them here leads nowhere, or to another pod`;
      },
    },
    { found: ({ services, subnets }) => `left to their networks: ${byNetwork(services, subnets)}` },
  ],
);

/** The controller of Gateways says in their conditions what they lack. */
const gateways = lines(
  ({ api: facts }) => (facts.kind === "answers" && facts.gateways !== undefined ? [facts.gateways] : []),
  "Gateways",
  [
    { when: (all) => all.every(({ waitsFor }) => waitsFor === undefined), found: (all) => `${all.length} programmed` },
    {
      warning: "program-gateways",
      found: (all) => {
        const waiting = all.filter(({ waitsFor }) => waitsFor !== undefined);
        return `not programmed: ${listed(
          waiting.map(({ gateway, waitsFor }) => `${gateway} (${waitsFor})`),
          "; ",
        )}`;
      },
      advice:
        "see that fairlead-controller runs with --jobs=gateways, that a load balancer gives addresses to Services, or that the GatewayClass " +
        "asks for node ports (docs/gateway.md)",
    },
  ],
);

function noticeText(one: Problem): string {
  const { kind, namespace, name, field, reason } = one;
  return `${serviceOfProblem(one) ?? [kind, namespace, name].filter(Boolean).join("/")}: ${field} ${reason}`;
}

const ASKED = "what Services ask for";

/** A line for what loses traffic or is open, and one for what only has no effect. */
const notices = lines(
  ({ notices: all }) => {
    if (all === undefined) return [];
    const groups = [true, false].map((does) => all.filter(({ effect }) => (effect !== "note") === does));
    return all.length === 0 ? [all] : groups.filter(({ length }) => length > 0);
  },
  ASKED,
  [
    { when: ({ length }) => length === 0, found: "nothing does other than it seems to" },
    // A note asks for nothing.
    { when: ([first]) => first?.effect === "note", found: (found) => listed(found.map(noticeText), "; ") },
    {
      warning: "explain-services",
      found: (found) => listed(found.map(noticeText), "; "),
      advice: ([first]) => {
        const service = (first && serviceOfProblem(first)) ?? "NAMESPACE/NAME";
        return `look at each with \`fairlead explain ${service}\` (docs/notices.md)`;
      },
    },
  ],
);

const deniedText = ({ api }: NodeFacts) => (api.kind === "answers" ? api.denied.join(", ") : "");
const serverOf = ({ api }: NodeFacts) => (api.kind === "answers" ? api.server : "");

const api = line("API server", [
  {
    unknown: "give-kubeconfig",
    when: ({ api: facts }) => facts.kind === "unasked",
    found: "not asked: no cluster is known",
    advice: "give the agent's kubeconfig with --kubeconfig",
  },
  {
    bad: "reach-api-server",
    when: ({ api: facts }) => facts.kind === "unreachable",
    found: ({ api: facts }) => (facts.kind === "unreachable" ? facts.reason : ""),
    advice: "look at the kubeconfig's server and credentials, and at the way there",
  },
  { when: (facts) => deniedText(facts) === "", found: (facts) => `${serverOf(facts)} allows all that the agent needs` },
  {
    unknown: "ask-as-agent",
    when: ({ api: facts }) => facts.kind === "answers" && facts.ofOther === true,
    found: (facts) => `${serverOf(facts)} does not allow your user what the agent needs: ${deniedText(facts)}`,
    advice: "ask on the node, with the agent's kubeconfig (--kubeconfig): the agent may have these rights",
  },
  {
    bad: "bind-role",
    found: (facts) => `${serverOf(facts)} does not allow: ${deniedText(facts)}`,
    advice: "bind the ClusterRole system:node-proxier to the agent's account",
  },
]);

export const clusterRows = [called, decisions, kept, isolated, gateways, notices, api] as const;
