import { once } from "node:events";
import { parseArgs } from "node:util";
import { errorText } from "@fairlead/base";
import { modeNamed } from "@fairlead/lab/modes";
import { missingHere } from "@fairlead/lab/support/machine";
import { clientA } from "@fairlead/testkit";
import { play, verdict } from "./checks.ts";
import { openConsole } from "./console.ts";
import { localStage } from "./local-stage.ts";
import { memoryStage } from "./memory-stage.ts";
import { realStage } from "./real-stage.ts";
import { type DemoEnvironment, demoObjects, NGINX_CALICO_IP } from "./stage.ts";

/** Modes whose rules this kernel, and not only one in User-Mode Linux, can take. */
const OFFERED = ["iptables", "nftables"] as const;

const usage = `Usage: npm run demo [-- --keep] [-- --console] [-- --memory] [-- --mode MODE]
  --keep    leaves everything running to look around in, until Ctrl-C
  --console leaves it running, and opens the console in the browser on its services and its node's kernel, until Ctrl-C
  --memory  plays on the kernel in memory and on local ports, even where the real kernel can be used
  --mode    ${OFFERED.join(" or ")} on the real kernel; default ${OFFERED[0]}`;

process.exitCode = await main(process.argv.slice(2).filter((arg) => arg !== "--"));

async function main(args: readonly string[]): Promise<number> {
  const flags = parseFlags(args);
  if (typeof flags === "string") {
    console.error(`${flags}\n${usage}`);
    return 2;
  }
  try {
    let code = 0;
    for (const open of await stages(flags)) code ||= await perform(await open(), flags);
    return code;
  } catch (error) {
    console.error(`Failed: ${errorText(error)}`);
    return 1;
  }
}

/** @returns a text: what is wrong */
function parseFlags(args: readonly string[]) {
  try {
    const flag = { type: "boolean", default: false } as const;
    const mode = { type: "string", default: OFFERED[0] } as const;
    const { values } = parseArgs({ args: [...args], options: { keep: flag, memory: flag, console: flag, mode } });
    if (OFFERED.some((name) => name === values.mode)) return values;
    return `--mode ${values.mode}: the demo plays in ${OFFERED.join(" or ")} mode`;
  } catch (error) {
    return errorText(error);
  }
}

type Flags = Exclude<ReturnType<typeof parseFlags>, string>;

/** Without namespaces the rules are played in memory, and what needs no rule with real requests. */
async function stages({ memory, mode }: Flags): Promise<readonly (() => Promise<DemoEnvironment>)[]> {
  const missing = memory ? "--memory was given" : await missingHere();
  const until = { from: clientA, to: NGINX_CALICO_IP, port: 80, count: 4 };
  if (missing === undefined) return [() => realStage(demoObjects(), until, modeNamed(mode))];
  console.log(`No real kernel: ${missing}; in memory it is iptables mode that plays`);
  return [() => memoryStage(demoObjects()), () => localStage(demoObjects())];
}

/** Ctrl-C ends the show wherever it is; everything is taken down all the same. */
async function perform(
  stage: DemoEnvironment,
  flags: { readonly keep: boolean; readonly console: boolean },
): Promise<number> {
  const stopped = once(process, "SIGINT").then(() => undefined);
  const started = performance.now();
  console.log(`\nFairlead on ${stage.ground}`);
  console.log(
    "Calico-like pods 10.144.0.0/16 are ours, OVN-like pods 10.244.0.0/16 are another's (--exclude-cluster-cidr)\n",
  );
  const findings = await Promise.race([play(stage, console.log), stopped]).catch(async (error) => {
    await stage.close();
    throw error;
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (flags.console && findings !== undefined) await openConsole(stage, stopped);
  else if (flags.keep && stage.real && findings !== undefined) await keepRunning(stage, stopped);
  const left = await stage.close();
  console.log(findings === undefined ? "\nStopped." : `\n${verdict(stage, findings, left)} (${seconds} s)`);
  return findings?.every(({ ok }) => ok) && left.length === 0 ? 0 : 1;
}

async function keepRunning(stage: DemoEnvironment, stopped: Promise<undefined>): Promise<void> {
  console.log(["", "Still running; look around, Ctrl-C ends it:", ...stage.tour.map((line) => `  ${line}`)].join("\n"));
  await stopped;
}
