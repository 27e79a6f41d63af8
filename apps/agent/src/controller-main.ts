import { tooOld } from "@fairlead/base";

/** As `engines` of package.json says. */
const old = tooOld("fairlead-controller", [22, 14], process.versions.node);
if (old !== undefined) {
  process.stderr.write(`${old}\n`);
  process.exitCode = 1;
} else await import("./controller/program.ts");
