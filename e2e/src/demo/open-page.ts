import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { execa } from "execa";

/**
 * Opens an address with a token in the user's browser, if there is one: by a file that only this user reads, as other
 * users see arguments of processes.
 *
 * @param folder goes with whoever made it
 */
export async function openPage(url: string, folder: string): Promise<void> {
  const file = join(folder, "open.html");
  await writeFile(file, `<!doctype html><meta http-equiv="refresh" content="0; url=${url}">`, { mode: 0o600 });
  const program = process.platform === "darwin" ? "open" : "xdg-open";
  const { failed } = await execa(program, [pathToFileURL(file).href], { stdio: "ignore", reject: false });
  if (failed) console.log("No browser could be started: open the address yourself.");
}
