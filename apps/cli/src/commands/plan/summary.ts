import { IP_FAMILIES, socketText } from "@fairlead/base";
import type { Frontend, ServicePortGroup } from "@fairlead/core";
import type { Plans } from "../../inputs/namespaces.ts";
import { tableText } from "../../output/table.ts";

/** One row for each service port that is programmed, and one for each service that is left to another network. */
export function summaryText({ planner }: Pick<Plans, "planner">): string {
  const rows = IP_FAMILIES.flatMap((family) => [...planner.plan(family).groups.values()].map(groupRow));
  const foreign = [...planner.ownerships()].filter(({ decision }) => decision.frontends === "none");
  const left = foreign.map(({ service, family, decision }) => [service, family, "-", "-", "-", decision.why]);
  const head = ["service", "family", "frontends", "cluster", "local", "remark"];
  return tableText(head, [...rows, ...left].sort(byCells));
}

function groupRow(group: ServicePortGroup): string[] {
  const { name, family, frontends, cluster, local } = group;
  const counts = [cluster, local].map(({ length }) => String(length));
  return [name, family, frontends.map(frontendText).join(" "), ...counts, remark(group)];
}

function frontendText({ address, port, kind }: Frontend): string {
  if (address === undefined) return `node-port:${port}`;
  return `${kind === "cluster-ip" ? "" : `${kind}:`}${socketText(address, port)}`;
}

function remark({ frontends, affinitySeconds }: ServicePortGroup): string {
  const verdicts = new Set(
    frontends.flatMap(({ treatments }) => Object.values(treatments).map(({ verdict }) => verdict)),
  );
  const refused = (["reject", "drop"] as const).filter((verdict) => verdicts.has(verdict));
  const [first, ...more] = frontends.flatMap(({ excludedClients = [] }) => excludedClients);
  const exception = `left to another network for clients in ${first}${more.length === 0 ? "" : ` and ${more.length} more`}`;
  return [
    ...refused,
    ...(first === undefined ? [] : [exception]),
    ...(affinitySeconds === undefined ? [] : [`affinity ${affinitySeconds} s`]),
  ].join(", ");
}

function byCells(a: readonly string[], b: readonly string[]): number {
  const [left, right] = [a.join("\0"), b.join("\0")];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
