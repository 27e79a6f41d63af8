import { tooOld } from "@fairlead/base";
import { versionText } from "./version.ts";

// Asked by scripts that only want to know whether it is there: nothing else is loaded for it.
const [, file = "", ...asked] = process.argv;
const justVersion = asked.length === 1 && asked[0] === "--version" && !file.includes("_complete-");
// As `engines` of package.json says.
const old = tooOld("fairlead", [22, 19], process.versions.node);
if (justVersion) process.stdout.write(versionText);
else if (old !== undefined) {
  process.stderr.write(`${old}\n`);
  process.exitCode = 3;
} else await import("./start.ts");
