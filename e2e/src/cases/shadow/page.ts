import type { Runner } from "@fairlead/kernel";

/** What the shadow reports at /differences, as far as tests ask. */
export interface ShadowPage {
  readonly mode: string;
  readonly families: Readonly<Record<"IPv4" | "IPv6", FamilyPage>>;
}

interface FamilyPage {
  readonly problem?: string;
  readonly lastRound?: { readonly at: string; readonly seconds: number; readonly services: number };
  readonly differing: number;
  readonly withinGrace: number;
  readonly services: readonly { readonly name: string; readonly differences: readonly { readonly kind: string }[] }[];
}

const URL = "http://127.0.0.1:10449/differences";

/** Undefined: it does not answer (yet). */
export async function askShadow(runner: Runner): Promise<ShadowPage | undefined> {
  try {
    const { stdout } = await runner.run(["curl", "--silent", "--fail", "--max-time", "10", URL]);
    return JSON.parse(stdout);
  } catch {
    return undefined;
  }
}

/** Whether all services were looked at since, in each family that has any, and none differs. */
export function agrees({ families }: ShadowPage, since: number): boolean {
  return Object.values(families).every(
    ({ lastRound, differing, withinGrace, problem }) =>
      problem === undefined && differing + withinGrace === 0 && Date.parse(lastRound?.at ?? "") > since,
  );
}

export function kindsOf({ families }: ShadowPage): readonly string[] {
  return Object.values(families).flatMap(({ services }) =>
    services.flatMap(({ differences }) => differences.map(({ kind }) => kind)),
  );
}
