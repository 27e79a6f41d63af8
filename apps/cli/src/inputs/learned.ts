import type { LearnedOnce } from "@fairlead/intake";

/** Resources that an operator described, and no object in the files is of: without a definition a kind is guessed. */
export function unmatched({ report }: LearnedOnce): readonly string[] {
  const described = report.sources.filter(({ source, state }) => source.includes(".") && state === "empty");
  return described.map(
    ({ source }) =>
      `${source}: the files have no object of this resource, so nothing is learned from it. Where its kind does not follow from ` +
      "the name, add its CustomResourceDefinition to the files",
  );
}

/** What of networks' objects does not count, or cannot be known; a line each. */
export function learnedDoubts({ report, problems }: LearnedOnce): readonly string[] {
  const unread = report.sources.filter(({ state }) => state === "forbidden" || state === "unreachable");
  const refused = report.cidrs.filter(({ stage }) => stage === "refused" || stage === "held");
  return [
    ...unread.map(({ source, state, forbidden = [] }) => {
      const which = forbidden.length > 0 ? ` (${forbidden.join(", ")})` : "";
      return `${source}: ${state}${which}; what an agent learns of it is not known here`;
    }),
    ...problems,
    ...refused.map(({ cidr, objects, why = "" }) => `${objects.join(", ")}: ${cidr} does not count: ${why}`),
  ];
}
