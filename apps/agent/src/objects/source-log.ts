import type { RequestProblem, SourceReport } from "@fairlead/watch";
import type { Fields, Log } from "../log/log.ts";

export interface SourceLogOptions {
  readonly log: Log;
  /** Why an address is taken for that of a Service; undefined: it is not. */
  readonly serviceAddress: (address: string) => string | undefined;
  /** What stays as it is while the API server cannot be asked. Default: rules. */
  readonly keeps?: string;
}

type FailingReport = Extract<SourceReport, { readonly type: "failing" }>;

const PROBLEMS: Readonly<Record<RequestProblem, string>> = {
  unreachable: "API server cannot be reached",
  refused: "API server refuses requests",
  unreadable: "API server answers cannot be read",
};

/** Lines for what a source reports. */
export function logSource({ log, serviceAddress, keeps = "rules" }: SourceLogOptions): (report: SourceReport) => void {
  return (report) => {
    const { type, ...details } = report;
    const fields = wholeMilliseconds(details);
    switch (type) {
      case "listed":
        return log.verbose(2, "Listed", fields);
      case "retry":
        return log.verbose(4, "Request failed; retrying", fields);
      case "encoding":
        return log.verbose(4, "Encoding of the API server's answers", fields);
      case "failing":
        return log.error(
          `${PROBLEMS[report.problem]}; ${keeps} stay as they are, retrying`,
          failing(report, serviceAddress),
        );
      case "recovered":
        return log.info("API server requests succeed again", fields);
      case "badObject":
        return log.warn("Invalid object ignored", fields);
      case "badFile":
        return log.error("Cannot read manifest file; its last valid objects stay in effect", fields);
      case "duplicate":
        return log.warn("Object defined in several manifests; the last file in name order is used", fields);
      case "skippedKind":
        return log.info("Ignoring objects of unused kind", fields);
      case "waiting":
        return log.error("Manifest path does not exist; waiting for it", fields);
    }
  };
}

function failing(report: FailingReport, serviceAddress: SourceLogOptions["serviceAddress"]): Fields {
  const { problem, server, address, error, resources, milliseconds } = report;
  const fields = { server, error, milliseconds: Math.round(milliseconds), resources: resources.join(",") };
  const why = problem === "unreachable" ? serviceAddress(address) : undefined;
  if (why === undefined) return fields;
  const hint =
    `${address} ${why}: nothing serves those before this proxy does, so it needs the API server's own address ` +
    "(server in its kubeconfig, --master, or KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT)";
  return { ...fields, hint };
}

function wholeMilliseconds(fields: Fields): Fields {
  const { milliseconds } = fields;
  return typeof milliseconds === "number" ? { ...fields, milliseconds: Math.round(milliseconds) } : fields;
}
