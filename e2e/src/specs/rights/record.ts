import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type RightsOutcome, rightsTable } from "./outcome.ts";

/** What readers with narrow rights get of each command, as a run saw it: part of the project. */
export const RECORDED = fileURLToPath(new URL("../../../rights.json", import.meta.url));
/** The page that has the table. */
export const PAGE = fileURLToPath(new URL("../../../../docs/tools.md", import.meta.url));

const BEGIN = "<!-- Made by FAIRLEAD_RECORD_RIGHTS=1 pnpm e2e --suite faults --spec rights. -->";
const END = "<!-- End of what is made. -->";

/** The page with the table of these outcomes. @throws Error where it has no place for it */
export function withTable(page: string, outcomes: readonly RightsOutcome[]): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`docs/tools.md has no passage between ${BEGIN} and ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${rightsTable(outcomes)}\n\n${page.slice(end)}`;
}

/** Records a run, and writes the table of the page anew. */
export async function writeRights(outcomes: readonly RightsOutcome[]): Promise<void> {
  await writeFile(RECORDED, `${JSON.stringify(outcomes, undefined, 2)}\n`);
  await writeFile(PAGE, withTable(await readFile(PAGE, "utf8"), outcomes));
}
