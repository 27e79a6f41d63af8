import { type Acting, linesOf, linesUntil, readyPod, removePod, startPod, waitFor } from "./act.ts";
import type { Ground, Place } from "./model.ts";
import { serverRole } from "./objects.ts";
import { type Case, casesOf } from "./plan.ts";
import { askAll, ownAddresses } from "./pod/ask.ts";
import { complaintOf } from "./pod/judge.ts";
import type { Line, Observed, Probe } from "./pod/probe.ts";
import type { Judged } from "./table.ts";

/** Asks every case, from all places at once. @param patienceMs until what is programmed has to be right */
export async function judgedCases(acting: Acting, ground: Ground, patienceMs: number): Promise<readonly Judged[]> {
  const cases = casesOf(ground);
  const byClient = Map.groupBy(cases, clientOf);
  const observed = await Promise.all(
    Array.from(byClient, async ([client, own]) => {
      const probes = own.map(({ probe }) => probe);
      const ask = () => {
        if (client === "outside") return askHere(probes, patienceMs);
        if (client === "hairpin") return askOfItself(acting, ground, probes, patienceMs);
        return askIn(acting, ground, client, probes, patienceMs);
      };
      const answers = await ask();
      const wrong = probes.filter((probe) => {
        const one = answers.find(({ id }) => id === probe.id);
        return one === undefined || !isRight(one, probe);
      });
      acting.warn(`asked from ${client}: ${probes.length - wrong.length} of ${probes.length} right`);
      return answers;
    }),
  );
  const answers = new Map(observed.flat().map((one) => [one.id, one]));
  return cases.map((one) => judged(one, answers.get(one.probe.id)));
}

type Client = Place | "hairpin";

function clientOf({ service, place }: Case): Client {
  return service === "web-hairpin" ? "hairpin" : place;
}

function judged({ probe, ...of }: Case, observed: Observed | undefined): Judged {
  const { address, port, name } = probe;
  const to = name?.text ?? (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);
  const complaint =
    observed === undefined ? "its client did not ask" : complaintOf(probe.expected, observed.answers, observed.own);
  return { ...of, to, ...(complaint !== undefined && { complaint }) };
}

async function askHere(probes: readonly Probe[], patienceMs: number): Promise<readonly Observed[]> {
  const observed: Observed[] = [];
  await askAll(probes, { patienceMs, own: ownAddresses() }, (one) => void observed.push(one));
  return observed;
}

/** Clients of a kept run are replaced: they have asked. */
async function askIn(
  acting: Acting,
  ground: Ground,
  client: Exclude<Client, "outside" | "hairpin">,
  probes: readonly Probe[],
  patienceMs: number,
): Promise<readonly Observed[]> {
  const name = `client-${client}`;
  await removePod(acting, name);
  await startPod(acting, {
    name,
    node: client.endsWith("there") ? ground.there.name : ground.here.name,
    roles: [{ kind: "ask", probes, patienceMs }],
    ...(client.startsWith("node") && { hostNetwork: true as const }),
  });
  await readyPod(acting, name);
  const lines = await linesUntil(acting, name, "ask", "done");
  return lines.filter((line) => line.kind === "observed");
}

/** It is its service's endpoint, so it stays and asks in rounds; the last one that began after this call counts. */
async function askOfItself(
  acting: Acting,
  ground: Ground,
  probes: readonly Probe[],
  patienceMs: number,
): Promise<readonly Observed[]> {
  const name = "web-hairpin";
  const ask = { kind: "ask", probes, patienceMs: 0, forever: true } as const;
  await startPod(acting, { name, node: ground.here.name, roles: [serverRole(name), ask], serves: ["hairpin"] });
  await readyPod(acting, name);
  const rounds = async () => roundsIn(await linesOf(acting, name, "ask"));
  const before = (await rounds()).length;
  const end = performance.now() + patienceMs;
  const last = await waitFor(`${name} to ask`, acting, async () => {
    const all = await rounds();
    const round = all.at(-1);
    if (round === undefined || all.length < before + 2) return "no answer yet";
    return performance.now() > end || round.every((one, at) => isRight(one, probes[at])) ? { round } : "not right yet";
  });
  // A kept client has the numbers of its own run.
  return probes.flatMap(({ id }, at) => {
    const one = last.round[at];
    return one === undefined ? [] : [{ ...one, id }];
  });
}

function isRight({ answers, own }: Observed, probe: Probe | undefined): boolean {
  return probe === undefined || complaintOf(probe.expected, answers, own) === undefined;
}

/** What was observed in each round that is over, in the order of probes. */
function roundsIn(lines: readonly Line[]): readonly (readonly Observed[])[] {
  const rounds: Observed[][] = [];
  let round: Observed[] = [];
  for (const line of lines) {
    if (line.kind === "observed") round.push(line);
    if (line.kind !== "done") continue;
    rounds.push(round.sort((a, b) => a.id - b.id));
    round = [];
  }
  return rounds;
}
