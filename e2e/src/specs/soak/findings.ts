import type { Finding, ServiceReport } from "@fairlead/verify";

interface FamilyReport {
  readonly services: readonly ServiceReport[];
}

/**
 * What `fairlead verify -o json` has found, a line each. Who masquerades does not count: pod networks do it on their
 * own account, with what leaves them for another network.
 */
export function findingsIn(text: string): readonly string[] {
  const reports: readonly FamilyReport[] = JSON.parse(text);
  return reports
    .flatMap(({ services }) => services.flatMap(({ findings }) => findings))
    .filter((finding) => !isOthersMasquerade(finding))
    .map(({ kind, service = "", where, what }) => `${kind} ${service} ${where}: ${what}`);
}

function isOthersMasquerade({ where, what }: Finding): boolean {
  const [have, want] = what.replaceAll(" masqueraded", "").split(", expected ");
  return where.startsWith("traffic ") && have === want;
}
