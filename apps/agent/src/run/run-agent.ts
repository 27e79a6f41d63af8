import { errorChainText, sleep } from "@fairlead/base";
import { createAgent } from "./agent.ts";
import { watchConfigFile } from "./config-file.ts";
import { NodeEligibility } from "./eligibility.ts";
import { followForeign } from "./foreign-changes.ts";
import { followInputs } from "./inputs.ts";
import type { Agent, AgentParts } from "./parts.ts";
import { openServers } from "./servers.ts";

/** Milliseconds that connections through this process get to end after SIGTERM. */
const DRAIN_MS = 1_000;
/** Milliseconds that what runs gets to end after SIGTERM. A restore that is cut off leaves its tables as they were. */
const SHUTDOWN_MS = 1_500;

/**
 * Runs the agent until `stop` aborts or it cannot go on. The rules stay in place either way.
 *
 * @returns undefined after `stop`; else why it cannot go on
 */
export async function runAgent(parts: AgentParts, stop: AbortSignal): Promise<string | undefined> {
  const agent = createAgent(parts);
  const ended = Promise.withResolvers<string | undefined>();
  const down = new AbortController();
  stop.addEventListener("abort", () => ended.resolve(undefined));
  if (stop.aborted) ended.resolve(undefined);
  start(parts, agent, down.signal, ended.resolve);
  const reason = await ended.promise;
  down.abort();
  await Promise.race([shutDown(parts, agent), sleep(parts.clock, SHUTDOWN_MS)]);
  return reason;
}

function start(parts: AgentParts, agent: Agent, signal: AbortSignal, fail: (reason: string) => void): void {
  const eligibility = new NodeEligibility(parts.config.manifests === undefined);
  openServers(parts, agent, eligibility, signal, fail);
  followInputs(parts, agent, { eligibility, signal, fail });
  void followForeign(parts, agent, signal);
  void parts.replies?.run(signal);
  followConfigFile(parts, signal, fail);
}

function followConfigFile(
  { config, clock, log }: AgentParts,
  signal: AbortSignal,
  fail: (reason: string) => void,
): void {
  if (config.configFile === undefined) return;
  watchConfigFile({
    ...config.configFile,
    clock,
    signal,
    onChange: () => fail("the configuration file changed: ending, to be started again with the new one"),
    onError: (error) =>
      log.warn("Cannot watch the configuration file; changes need a restart", { error: errorChainText(error) }),
  });
}

async function shutDown(
  { relaying, clock }: AgentParts,
  { loop, keeper, networks, delay, known, serviceHealth }: Agent,
): Promise<void> {
  networks?.stop();
  delay.stop();
  await Promise.all([
    loop.stop(),
    relaying?.close(sleep(clock, DRAIN_MS)),
    ...Array.from(serviceHealth.values(), (servers) => servers.close()),
  ]);
  await Promise.all([keeper.flush(), known.flush()]);
}
