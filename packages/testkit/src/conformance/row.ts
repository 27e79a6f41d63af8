import type { RawObject } from "../objects/raw.ts";
import { type CaseFields, type ConformanceCase, conformanceCase } from "./case.ts";
import type { Workload } from "./workload.ts";

/**
 * What a row says alongside its workload: the packet goes to the IPv4 ClusterIP and the service port unless it says
 * otherwise.
 */
type RowFields = Omit<CaseFields, "to" | "port" | "history"> &
  Partial<Pick<CaseFields, "to" | "port">> & {
    /** States before the workload's own. */
    readonly before?: readonly (readonly RawObject[])[];
  };

export type Row = (name: string, workload: Workload, fields: RowFields) => ConformanceCase;

/** Makes the rows of one topic. */
export function rowsOf(topic: string): Row {
  return (name, workload, { before = [], ...fields }) =>
    conformanceCase(topic, name, {
      to: workload.clusterIP.IPv4,
      port: workload.port,
      ...fields,
      history: [...before, workload.objects],
    });
}
