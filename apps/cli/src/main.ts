import { versionText } from "./version.ts";

// Asked by scripts that only want to know whether it is there: nothing else is loaded for it.
const asked = process.argv.slice(2);
if (asked.length === 1 && asked[0] === "--version") process.stdout.write(versionText);
else await import("./start.ts");
