import type { ServiceReport } from "@fairlead/inspect";

interface FamilyReport {
  readonly services: readonly ServiceReport[];
}

/** What `fairlead verify -o json` has found, a line each. */
export function findingsIn(text: string): readonly string[] {
  const reports: readonly FamilyReport[] = JSON.parse(text);
  return reports
    .flatMap(({ services }) => services.flatMap(({ findings }) => findings))
    .map(({ kind, service = "", where, what }) => `${kind} ${service} ${where}: ${what}`);
}
