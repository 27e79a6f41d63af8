import type { LearntOnce } from "@fairlead/intake";

/** What of networks' objects does not count, or cannot be known; a line each. */
export function learntDoubts({ report, problems }: LearntOnce): readonly string[] {
  const unread = report.sources.filter(({ state }) => state === "forbidden" || state === "unreachable");
  const refused = report.cidrs.filter(({ stage }) => stage === "refused" || stage === "held");
  return [
    ...unread.map(({ source, state }) => `${source}: ${state}; what an agent learns of it is not known here`),
    ...problems,
    ...refused.map(({ cidr, objects, why = "" }) => `${objects.join(", ")}: ${cidr} does not count: ${why}`),
  ];
}
