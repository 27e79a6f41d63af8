import { readFile } from "node:fs/promises";
import { createRunner } from "@fairlead/kernel";
import { createApiClient } from "@fairlead/lab/control-plane/api-client";
import { guestLines } from "@fairlead/lab/provider/guest/link";
import { applyLines, applySettings } from "@fairlead/lab/wire/apply";
import { kernelSettings } from "@fairlead/lab/wire/settings";
import { startAccounting } from "./accounting.ts";
import { measure } from "./measure.ts";
import type { GuestSettings } from "./settings.ts";

/**
 * Runs in the guest: measures the proxies one after the other, each result a line of JSON. Usage: guest-main.ts
 * SETTINGS-FILE
 */
const settings: GuestSettings = JSON.parse(await readFile(process.argv[2] ?? "", "utf8"));
const FOLDER = "/run";
const runner = createRunner();
await applySettings(runner, kernelSettings("fabric"));
await applyLines(runner, guestLines);
const { host, port, ca, token } = settings.apiServer;
const api = createApiClient({ at: { host, port }, ca, token });
const accounting = await startAccounting(runner, `${FOLDER}/accounting`);
for (const proxy of settings.order) {
  try {
    process.stdout.write(`${JSON.stringify(await measure(proxy, { settings, api, accounting, folder: FOLDER }))}\n`);
  } catch (error) {
    const log = await readFile(`${FOLDER}/${proxy}.log`, "utf8").catch(() => "");
    throw new Error(`${proxy} could not be measured; its log ends with:\n${log.slice(-4_000)}`, { cause: error });
  }
}
api.close();
