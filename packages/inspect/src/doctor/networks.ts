import type { OwnershipRow } from "@fairlead/intake";
import { advice } from "./advice.ts";
import { bad, good, unknown, warning } from "./diagnosis.ts";
import type { AgentDecisions, Diagnosis, NodeFacts } from "./facts.ts";

/** Services, and nodes, that a line names; the others are counted. */
const MOST_NAMED = 5;

/** Where services are left to other networks: whether anyone is left without an answer, and whether nodes agree. */
export function networks({ networks: facts }: NodeFacts): readonly Diagnosis[] {
  if (facts === undefined) return [];
  const { called, agents } = facts;
  if ("problem" in agents) return [calledServices(called), unasked(agents.problem)];
  if (agents.length === 0) return [calledServices(called), unasked("no agent's pod is found")];
  const silent = agents.filter((one) => "problem" in one).map(({ node }) => node);
  const answered = agents.filter(isAnswered);
  return [calledServices(called), decisions(answered, silent), ...kept(answered)];
}

function unasked(problem: string): Diagnosis {
  const what = "allow list of pods and create of pods/portforward, or ask with --kubeconfig of an operator";
  return unknown("decisions of the nodes", problem, advice("reach-agents", what));
}

function calledServices({ unanswered, unlisted }: NonNullable<NodeFacts["networks"]>["called"]): Diagnosis {
  const check = "Services that the API server calls";
  if (unanswered.length > 0) {
    const found = named(unanswered.map(({ service, objects }) => `${service} (${objects.slice(0, 2).join(", ")})`));
    const what =
      "set excludedFrontends: excluded-clients, or annotate them fairlead.dev/ownership: ours: they are left to another network, and " +
      "calls from nodes are not answered here";
    return bad(check, `left unanswered: ${found}`, advice("answer-calls", what));
  }
  if (unlisted.length === 0) return good(check, "each is answered on nodes");
  const what = "ask with --kubeconfig of an operator who may";
  return unknown(check, `may not list ${unlisted.join(", ")}`, advice("list-calls", what));
}

type Answered = Exclude<AgentDecisions, { readonly problem: string }>;

function isAnswered(one: AgentDecisions): one is Answered {
  return !("problem" in one);
}

/** What most nodes decide about a service is what the others are compared with. */
function decisions(agents: readonly Answered[], silent: readonly string[]): Diagnosis {
  const check = "decisions of the nodes";
  const rows = agents.flatMap(({ node, services }) => services.map((row) => ({ node, row })));
  const withEndpoints = rows.filter(({ row }) => row.ownEndpoints + row.excludedEndpoints > 0);
  const byService = Map.groupBy(withEndpoints, ({ row }) => `${row.service} ${row.ipFamily}`);
  const differing = new Map<string, string[]>();
  for (const [service, these] of byService) {
    const common = mostCommon(these.map(({ row }) => row.ownership));
    for (const { node, row } of these) {
      if (row.ownership === common) continue;
      const text = `${service} ${row.ownership}, ${common} elsewhere`;
      differing.set(node, [...(differing.get(node) ?? []), text]);
    }
  }
  if (differing.size > 0) {
    const found = named(Array.from(differing, ([node, services]) => `${node}: ${named(services)}`));
    const what =
      "wait for the removal delay, after which nodes that see the same objects decide the same; then compare versions, configurations and " +
      "fairlead ownership --on NODE";
    return warning(check, found, advice("compare-decisions", what));
  }
  if (silent.length > 0) {
    const what = "look at these agents with `fairlead status`";
    return unknown(
      check,
      `${named(silent)}: no answer; the other ${agents.length} decide the same`,
      advice("look-at-agents", what),
    );
  }
  return good(check, `${agents.length} decide the same`);
}

function mostCommon(owners: readonly OwnershipRow["ownership"][]): OwnershipRow["ownership"] | undefined {
  const counted = [...Map.groupBy(owners, (owner) => owner)];
  return counted.sort(([a, as], [b, bs]) => bs.length - as.length || (a < b ? -1 : 1))[0]?.[0];
}

/** CIDRs that are in effect although no object defines them. */
function kept(agents: readonly Answered[]): readonly Diagnosis[] {
  const found = agents.flatMap(({ node, cidrs }) =>
    cidrs.flatMap(({ cidr, source, kept: isKept }) =>
      isKept === true ? [{ node, cidr: `${cidr} of ${source}` }] : [],
    ),
  );
  if (found.length === 0) return [];
  const byCIDR = Array.from(
    Map.groupBy(found, ({ cidr }) => cidr),
    ([cidr, these]) => `${cidr} (${named(these.map(({ node }) => node))})`,
  );
  const what =
    "nothing, they end with the removal delay, or once their source can be read; fairlead ownership --forget CIDR ends them now";
  return [warning("kept CIDRs", `no object defines them anymore: ${named(byCIDR)}`, advice("kept-cidrs", what))];
}

function named(all: readonly string[]): string {
  const more = all.length - MOST_NAMED;
  return `${all.slice(0, MOST_NAMED).join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}
