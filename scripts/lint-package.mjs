// The types of the package in this folder, as a user who installs it meets them. `attw --pack` packs into the folder itself,
// where a killed command leaves the file; this packs where files are temporary.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "fairlead-packed-"));
try {
  const packed = spawnSync("pnpm", ["pack", "--pack-destination", folder], { encoding: "utf8" });
  if (packed.status !== 0) throw new Error(`pnpm pack: ${packed.error ?? packed.stdout + packed.stderr}`);
  const files = readdirSync(folder).map((name) => join(folder, name));
  process.exitCode = spawnSync("attw", [...files, "--profile", "esm-only"], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
