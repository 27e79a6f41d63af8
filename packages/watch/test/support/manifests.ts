import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createManifestsSource, type ManifestsSourceOptions, type SourceReport } from "../../src/index.ts";
import { Consumer } from "./consumer.ts";
import { later } from "./run.ts";

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-watch-"));
  later(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Follows `path` with a consumer for each resource until the test ends. */
export function followManifests(path: string, options: Partial<ManifestsSourceOptions> = {}) {
  const reports: SourceReport[] = [];
  const waiting: { holds: () => boolean; wake: () => void }[] = [];
  const onReport = (report: SourceReport) => {
    reports.push(report);
    for (const { holds, wake } of waiting) if (holds()) wake();
  };
  const to = { services: new Consumer(), slices: new Consumer(), node: new Consumer(), cidrs: new Consumer() };
  const source = createManifestsSource({ path, nodeName: "node-a", onReport, ...options });
  const controller = new AbortController();
  const ended = source.run(
    {
      services: to.services.subscription,
      endpointSlices: to.slices.subscription,
      node: to.node.subscription,
      serviceCIDRs: to.cidrs.subscription,
    },
    controller.signal,
  );
  later(async () => {
    controller.abort();
    await ended;
  });
  /** Resolves once such a report has come. */
  const reported = async (type: SourceReport["type"]) => {
    const holds = () => reports.some((report) => report.type === type);
    if (!holds()) await new Promise<void>((wake) => waiting.push({ holds, wake }));
    return reports.filter((report) => report.type === type);
  };
  const synced = () => to.cidrs.until(() => to.cidrs.synced > 0);
  return { ...to, reports, reported, synced };
}
