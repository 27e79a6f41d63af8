import type { AdviceName, Diagnosis } from "@fairlead/inspect";
import { expectAnswers } from "../expect.ts";
import { startTraffic, type TrafficFlow, type TrafficSeen, withoutFailure } from "../faults/traffic.ts";
import { until } from "../until.ts";
import { type Bench, fullyGiven, given, type Printed, printed, runPrinted } from "./bench.ts";

/** Asks the doctor. */
export type Ask = () => Promise<readonly Diagnosis[]>;

export type Later = (undo: () => Promise<unknown>) => void;

/** A state in which doctor gives an advice, and what following it to the letter is. */
export interface AdviceCase {
  readonly advice: AdviceName;
  readonly what: string;
  /** Makes the state. @returns how doctor is asked in it; default: with all that it can be given */
  readonly make: (bench: Bench, later: Later) => Promise<Ask | undefined> | Promise<void>;
  /** Default: what stands in backticks is run. @returns how doctor is asked after it; default as for `make` */
  readonly follow?: (bench: Bench, advice: Printed) => Promise<Ask | undefined> | Promise<void>;
  /** The state itself stops requests, until the advice has been followed. */
  readonly interrupts?: true;
  /** What the advice is about stays, and so does the line: it asks to look at something. */
  readonly stays?: true;
  /** It is the same alongside kube-proxy. */
  readonly anyProxy?: true;
  /** Of the proxy; default: each. */
  readonly modes?: readonly string[];
  /** Which of several checks with that advice. */
  readonly check?: string;
}

interface Stage {
  readonly ways: readonly TrafficFlow[];
  readonly by: readonly { readonly name: string }[];
}

/**
 * No request may fail from before the state is made until its advice has been followed, and a while longer; where the
 * state itself stops requests, from then on. The finding must be gone.
 *
 * @returns what became of the requests
 */
export async function followAdvice(bench: Bench, one: AdviceCase, { ways, by }: Stage): Promise<TrafficSeen> {
  const usual: Ask = () => bench.doctor(fullyGiven(bench));
  await using undo = new AsyncDisposableStack();
  const later: Later = (undoIt) => undo.defer(async () => void (await undoIt()));
  const served = async () => void (await Promise.all(ways.map((way) => expectAnswers(way.from, way, { by }))));
  await served();
  const during = one.interrupts === true ? undefined : startTraffic(ways, later, LONGEST_MS);
  const ask = (await one.make(bench, later)) ?? usual;
  const found = await finding(one, ask);
  const after = (await (one.follow ?? runPrinted)(bench, printed(found))) ?? usual;
  await served();
  const traffic = during ?? startTraffic(ways, later, LONGEST_MS);
  await served();
  if (one.stays !== true) await until(`no ${found.check} any more`, () => complaint(found, after));
  const seen = await traffic.stop();
  withoutFailure(seen);
  return seen;
}

const LONGEST_MS = 300_000;

/** An agent may be in the middle of its start. @throws Error when the advice is not given */
async function finding({ advice, check }: AdviceCase, ask: Ask): Promise<Diagnosis> {
  let found: Diagnosis | undefined;
  await until(`advice ${advice}`, async () => {
    const all = await ask();
    found = given(all, advice, check);
    return found === undefined ? textOf(all) : undefined;
  });
  if (found === undefined) throw new Error(`advice ${advice} was not given`);
  return found;
}

async function complaint({ check }: Diagnosis, ask: Ask): Promise<string | undefined> {
  const left = (await ask()).filter((one) => one.check === check && one.state !== "good");
  return left.length === 0 ? undefined : textOf(left);
}

/** What is not good, a line each. */
export function textOf(all: readonly Diagnosis[]): string {
  const lines = all.filter(({ state }) => state !== "good");
  return lines
    .map(({ check, state, found, advice, adviceName }) => `${state} ${check}: ${found} → ${adviceName}: ${advice}`)
    .join("\n");
}
