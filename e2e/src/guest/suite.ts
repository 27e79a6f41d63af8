import type { Lab } from "@fairlead/lab/plain/lab";

/** What came of one spec. */
export interface Report {
  readonly name: string;
  /** Empty where all is well. */
  readonly problems: readonly string[];
}

/** Specs that run in the guest, one suite after the other on one test ground. Their names are known outside. */
export interface Suite {
  readonly names: readonly string[];
  run(lab: Lab): AsyncIterable<Report>;
}

/** One question with a ground of its own. Throws, or gives what is wrong. */
export interface Spec {
  readonly name: string;
  run(lab: Lab): Promise<readonly string[]>;
}

/** Runs the specs one by one; after each the ground is tidied. */
export function suiteOf(specs: readonly Spec[], tidy: (lab: Lab) => Promise<void>): Suite {
  return {
    names: specs.map(({ name }) => name),
    run: async function* (lab) {
      for (const { name, run } of specs) {
        yield { name, problems: await problemsOf(run(lab)) };
        await tidy(lab);
      }
    },
  };
}

export async function problemsOf(work: Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await work;
  } catch (error) {
    return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  }
}

/** What is wrong where two things are not the same. */
export function unequal(what: string, seen: unknown, wanted: unknown): string[] {
  const [first, second] = [JSON.stringify(seen), JSON.stringify(wanted)];
  return first === second ? [] : [`${what}: ${first} instead of ${second}`];
}
