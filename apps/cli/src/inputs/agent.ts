import { readFileSync } from "node:fs";
import { errorText } from "@fairlead/base";
import { type AgentConfig, formatError, parseArguments, withMode } from "@fairlead/config";
import { type FilterOptions, Memory, parseMemory } from "@fairlead/endpoint-filter";
import { MODES, type Mode, whyUnread } from "@fairlead/inspect";
import { filterSettings, type NetworksOnceParts, networksSettings } from "@fairlead/intake";
import type { agentOptions } from "../facts/options.ts";
import type { OptionValues } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import type { ProxyConfig } from "../node/proxy-config.ts";
import { version } from "../version.ts";

type AgentValues = Omit<OptionValues<typeof agentOptions>, "mode"> & { readonly mode: AgentConfig["mode"] | undefined };

/** How the agent that is asked about is set up. */
export interface AgentSetup {
  readonly mode: Mode;
  readonly config: AgentConfig;
  readonly filter: FilterOptions;
  /** Undefined: the agent learns no network. */
  readonly networks?: NetworksOnceParts["settings"] | undefined;
  readonly memory: Memory;
  /** The proxy is kube-proxy. */
  readonly asKubeProxy?: boolean;
}

export interface SetupOptions {
  /** A mode that no plan can be made for (userspace) counts as iptables mode. */
  readonly anyMode?: boolean;
  /** What the options override. Default: what an agent does without flags. */
  readonly base?: ProxyConfig | undefined;
}

export function agentSetup(
  options: AgentValues,
  { warn }: Pick<Context, "warn">,
  { anyMode = false, base }: SetupOptions = {},
): AgentSetup {
  const given = agentArguments(options);
  const own = options.config === undefined ? base : undefined;
  const parsed =
    own === undefined
      ? parseArguments(given, { readFile: readText, version, platform: "any" })
      : parseArguments(proxyArguments(own), {
          readFile: () => own.text,
          version,
          overrides: given,
          platform: "any",
        });
  if (parsed.kind === "usage-error") throw new UsageError(`--agent-flag: ${parsed.message.split("\n", 1)[0]}`);
  if (parsed.kind === "invalid") throw new CommandFailure(parsed.errors.map(formatError).join("\n"));
  if (parsed.kind !== "run") throw new UsageError("--agent-flag: that flag cannot be used here: it prints and exits");
  // The proxy itself has said what its own configuration is warned of.
  if (own === undefined) for (const warning of parsed.warnings) warn(warning);
  const setup = setupOf(inRunningMode(parsed.config, own), anyMode);
  const memory = memoryOf(options.memory, setup.filter, warn);
  return { ...setup, memory, ...(base?.ofKubeProxy === true && { asKubeProxy: true }) };
}

/** The configuration of a proxy, without options. */
export function proxySettings(proxy: ProxyConfig): AgentConfig {
  const parsed = parseArguments(proxyArguments(proxy), { readFile: () => proxy.text, version, platform: "any" });
  if (parsed.kind === "run") return inRunningMode(parsed.config, proxy);
  const errors =
    parsed.kind === "invalid"
      ? parsed.errors.map(formatError)
      : ["message" in parsed ? parsed.message.split("\n", 1)[0] : parsed.kind];
  throw new CommandFailure(`${proxy.from} has a configuration that cannot be read: ${errors.join("; ")}`);
}

function proxyArguments({ from, flags }: ProxyConfig): readonly string[] {
  return [`--config=${from}`, ...flags];
}

/** A proxy may have fallen back to another mode than the one of its configuration. */
function inRunningMode(config: AgentConfig, proxy: ProxyConfig | undefined): AgentConfig {
  const running = MODES.find((one) => one === proxy?.mode);
  const isGiven = config.provenance["mode"]?.startsWith("--") === true;
  return running === undefined || running === config.mode || isGiven ? config : withMode(config, running);
}

export function demandReadable(mode: Mode): void {
  const why = whyUnread(mode);
  if (why === undefined) return;
  throw new CommandFailure(
    `mode ${mode}: ${why}; without a look at a node, fairlead plan and fairlead explain say what is served`,
  );
}

/** For what does not read networks' objects. */
export function warnOfUnlearned({ networks }: AgentSetup, { warn }: Pick<Context, "warn">): void {
  if (networks === undefined) return;
  warn("what an agent learns of networks is not known here; give it with --exclude-cluster-cidr and --cluster-cidr");
}

function agentArguments(options: AgentValues): string[] {
  const { config, mode, "service-proxy-name": name } = options;
  return [
    ...(config === undefined ? given("proxy-mode", mode) : [`--config=${config}`]),
    ...given("service-proxy-name", name),
    ...joined("cluster-cidr", options["cluster-cidr"]),
    ...joined("exclude-cluster-cidr", options["exclude-cluster-cidr"]),
    ...options["agent-flag"].map((flag) => `--${flag.replace(/^--/, "")}`),
  ];
}

function given(flag: string, value: string | undefined): string[] {
  return value === undefined ? [] : [`--${flag}=${value}`];
}

/** Of a flag that the agent is given more than once it takes the last one. */
function joined(flag: string, values: readonly string[]): string[] {
  return values.length === 0 ? [] : [`--${flag}=${values.join(",")}`];
}

function modeOf({ mode }: AgentConfig, anyMode: boolean): Mode {
  const found = MODES.find((one) => one === mode) ?? (anyMode ? MODES[0] : undefined);
  if (found !== undefined) return found;
  throw new CommandFailure(`mode ${mode}: no plan can be made for it; use ${MODES.join(" or ")}`);
}

function memoryOf(file: string | undefined, scope: FilterOptions, warn: Context["warn"]): Memory {
  if (file === undefined) return new Memory();
  const { memory, reason } = parseMemory(memoryText(file), scope);
  if (reason !== undefined) warn(`--memory=${file}: ${reason}`);
  return memory;
}

function memoryText(file: string): string {
  try {
    return readText(file);
  } catch (error) {
    throw new CommandFailure(`--memory=${file}: ${errorText(error)}`, { cause: error });
  }
}

function readText(file: string): string {
  return readFileSync(file, "utf8");
}

/** @param anyMode a mode that no plan can be made for counts as iptables mode */
export function setupOf(config: AgentConfig, anyMode = false): AgentSetup {
  const filter = filterSettings(config);
  if (!filter.ok) throw new CommandFailure(filter.errors.join("\n"));
  const networks = networksSettings(config, filter.options);
  return { mode: modeOf(config, anyMode), config, filter: filter.options, networks, memory: new Memory() };
}

/** The same agent in another mode: what the configuration does not set follows the mode. */
export function inMode(setup: AgentSetup, mode: Mode): AgentSetup {
  return { ...setup, mode, config: withMode(setup.config, mode) };
}
