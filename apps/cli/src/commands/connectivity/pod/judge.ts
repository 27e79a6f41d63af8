import type { Answer, Expected } from "./probe.ts";

/**
 * @param own addresses of the client
 * @returns what is wrong; undefined: it is right
 */
export function complaintOf(
  expected: Expected,
  answers: readonly Answer[],
  own: readonly string[],
): string | undefined {
  switch (expected.kind) {
    case "answered":
      return notAnswered(expected, answers, own);
    case "refused":
      return answers.every((one) => "error" in one && one.error !== TIMEOUT)
        ? undefined
        : `expected a refusal at once; got ${countsText(answers)}`;
    case "unanswered":
      return answers.every((one) => "error" in one) ? undefined : `expected no answer; got ${countsText(answers)}`;
    case "resolved": {
      const wanted = [...expected.addresses].sort().join(", ");
      const right = answers.every((one) => "resolved" in one && [...one.resolved].sort().join(", ") === wanted);
      return right ? undefined : `expected ${wanted}; got ${countsText(answers)}`;
    }
  }
}

/** What stands for an error where nothing came in time. */
export const TIMEOUT = "timeout";

function notAnswered(
  { by, spread, seesClient, notSeen = [] }: Extract<Expected, { readonly kind: "answered" }>,
  answers: readonly Answer[],
  own: readonly string[],
): string | undefined {
  const served = answers.flatMap((one) => ("by" in one ? [one] : []));
  const servers = new Set(served.map((one) => one.by));
  const complaint = (what: string) => `expected ${what}; got ${countsText(answers)}`;
  if (served.length < answers.length || served.length === 0) return complaint(`answers of ${by.join(" and ")}`);
  if (served.some((one) => !by.includes(one.by))) return complaint(`answers of ${by.join(" or ")} only`);
  if (spread === "each" && servers.size < by.length) return complaint(`answers of each of ${by.join(", ")}`);
  if (spread === "one" && servers.size !== 1) return complaint("all answers of one endpoint");
  const wrong = served.some(({ seen }) => (seesClient === true && !own.includes(seen)) || notSeen.includes(seen));
  return wrong ? `expected the client's own address at the endpoint; got ${countsText(answers, true)}` : undefined;
}

/** `12 web-a, 3 timeout` */
function countsText(answers: readonly Answer[], addresses = false): string {
  const counts = new Map<string, number>();
  for (const one of answers) {
    const text = answerText(one, addresses);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return answers.length === 0 ? "nothing" : Array.from(counts, ([text, count]) => `${count} × ${text}`).join(", ");
}

function answerText(answer: Answer, addresses: boolean): string {
  if ("error" in answer) return answer.error;
  if ("resolved" in answer) return answer.resolved.join(" ");
  return addresses ? answer.seen : answer.by;
}
