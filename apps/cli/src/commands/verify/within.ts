import { isIn } from "../../inputs/namespaces.ts";
import type { FamilyReport } from "./family-report.ts";

/** Of the namespace that is asked for, with what all services share. */
export function within({ namespace }: { readonly namespace: string | undefined }, report: FamilyReport): FamilyReport {
  const isAsked = ({ service }: { readonly service?: string }) => service === undefined || isIn(namespace, service);
  const { services, notes, unknown } = report;
  return {
    ...report,
    services: services.filter(isAsked),
    ...(notes && { notes: notes.filter(isAsked) }),
    ...(unknown && { unknown: unknown.filter(isAsked) }),
  };
}
