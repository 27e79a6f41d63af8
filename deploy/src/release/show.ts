import type { ReleasePlan } from "./plan.ts";

/** A release plan for people to read. */
export function showPlan({ version, changesets, packages, image, tags, chart }: ReleasePlan): string {
  const what = changesets === 0 ? "no changesets: nothing to release" : `${changesets} changeset(s)`;
  const lines = [`Fairlead ${version} (${what})`, "", "npm, with provenance:"];
  for (const { name, version: current, files } of packages) {
    lines.push(`  ${name} ${current} → ${version}`, ...files.map((file) => `    ${file}`));
  }
  lines.push("", "image, for amd64 and arm64, with SBOM and provenance:", ...tags.map((tag) => `  ${image}:${tag}`));
  lines.push("", "chart:", `  ${chart}`, "");
  return lines.join("\n");
}
