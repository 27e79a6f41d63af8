import { type GivenFlags, readCommandLine, SHADOW_GONE } from "./command-line.ts";
import { deprecations, type FlagDocuments, flagDocuments, flagValues, PROXY } from "./flags.ts";
import { resolveInstance } from "./modes/instance.ts";
import { defaultNodePortAddresses, modeOf, resolveModes, warnOfNodePortAddresses } from "./modes/modes.ts";
import { resolveReplyVia } from "./modes/reply-via.ts";
import { leafPaths, valueAt } from "./paths.ts";
import { createReport, type Report } from "./report.ts";
import type { CommandOptions, ConfigInput } from "./resolve/input.ts";
import { resolveNode } from "./resolve/node.ts";
import { resolveProcess } from "./resolve/process.ts";
import { chooseSource, type Source, withOverrides } from "./source.ts";
import { decode } from "./table/decode.ts";
import { toKubeProxyConfiguration, toYAML } from "./table/external.ts";
import { API_VERSION, fairleadSchema, KIND } from "./table/fairlead.ts";
import { KIND as KUBE_PROXY_KIND, kubeProxySchema } from "./table/kube-proxy.ts";
import type { Action, AgentConfig, ParseEnvironment, ParseResult } from "./types.ts";
import { versionAsked } from "./version.ts";

/**
 * Reads the agent's command line and the file that it names. Does nothing else: what has to be printed and the code to
 * exit with are in the result.
 *
 * @param argv the arguments only, `process.argv.slice(2)`
 */
export function parseArguments(argv: readonly string[], environment: ParseEnvironment): ParseResult {
  const line = readCommandLine(argv, PROXY);
  if (line.kind !== "flags") return line;
  const over = readCommandLine(environment.overrides ?? [], PROXY);
  if (over.kind !== "flags") return over;
  const { platform } = environment;
  const overrides = flagDocuments(over.flags, platform);
  const own = flagDocuments(line.flags, platform);
  const flags = { ...own, options: { ...own.options, ...overrides.options } };
  const { version: asked } = flags.options;
  const version = versionAsked(asked, environment.version);
  if (version.kind === "print") return { kind: "version", text: version.text };
  const source = withOverrides(chooseSource(line.flags, flags, environment), overrides);
  const raw = { ...source.kubeProxy, ...source.fairlead, ...flags.options };
  const report = createReport(raw, (path) => (Object.hasOwn(flags.options, path) ? `--${path}` : source.name(path)));
  const values = flagValues(line.flags, platform);
  const config = {
    ...resolve(source, flags.options, environment, report),
    flags: values,
    commandLine: givenValues(line.flags, values),
  };
  const warnings = [...deprecations(line.flags), ...version.warnings, ...source.warnings, ...report.warnings];
  const errors = [...source.errors, ...report.errors];
  if (errors.length > 0) return { kind: "invalid", errors, warnings };
  return { kind: "run", config, warnings };
}

/**
 * The file that `parseArguments` asks for, for callers that cannot read it at once; undefined where it asks for none.
 *
 * @param argv the arguments only, `process.argv.slice(2)`
 * @param version Fairlead's own, for --version
 */
export function configFileOf(argv: readonly string[], version: string): string | undefined {
  const line = readCommandLine(argv, PROXY);
  if (line.kind !== "flags") return undefined;
  const { version: asked, config } = flagDocuments(line.flags).options;
  return typeof config === "string" && versionAsked(asked, version).kind !== "print" ? config : undefined;
}

/** What it gives while the report has errors is not to be used. */
function resolve(
  source: Source,
  options: FlagDocuments["options"],
  { platform = "linux", stateDir }: ParseEnvironment,
  report: Report,
): Omit<AgentConfig, "commandLine" | "flags"> {
  const input: ConfigInput = {
    origin: source.origin,
    kubeProxy: decode(kubeProxySchema, source.kubeProxy, report, { KIND, schema: fairleadSchema }),
    fairlead: decode(fairleadSchema, source.fairlead, report, { KIND: KUBE_PROXY_KIND, schema: kubeProxySchema }),
    options: commandOptions(options),
    platform,
    stateDir,
  };
  const instance = resolveInstance(input, report);
  const { serviceProxyName, serviceNetwork, defaults } = instance;
  const mode = modeOf(input, defaults);
  const serving = {
    serviceProxyName,
    serviceNetwork,
    ...(source.configFile === undefined ? {} : { configFile: source.configFile }),
    ...resolveModes(input, defaults, report),
    ...resolveNode(input, { ...defaults, nodePortAddresses: defaultNodePortAddresses(mode) }, report),
    ...resolveProcess(input, instance, report),
  };
  warnOfNodePortAddresses(serving, report);
  const replyVia = resolveReplyVia(input, serving, report);
  if (source.fairlead["shadow"] === true) report.error("shadow", `is not a setting of the agent; ${SHADOW_GONE}`);
  const resolved = { ...serving, ...(replyVia && { replyVia }) };
  const kubeProxyConfiguration = toKubeProxyConfiguration(resolved, input.kubeProxy);
  const action = chooseAction(options, kubeProxyConfiguration);
  const fairleadConfiguration = { ...source.fairlead, apiVersion: API_VERSION, kind: KIND };
  return { ...resolved, action, provenance: provenance(source), kubeProxyConfiguration, fairleadConfiguration };
}

function givenValues(given: GivenFlags, values: AgentConfig["flags"]): AgentConfig["commandLine"] {
  return Object.fromEntries(Object.entries(values).filter(([name]) => given.has(name)));
}

function commandOptions(options: FlagDocuments["options"]): CommandOptions {
  const { master, manifests, "state-dir": stateDir, "healthz-port": healthz, "metrics-port": metrics } = options;
  return {
    allowExecCredentials: options["allow-exec-credentials"] === true,
    userspaceOnly: options["userspace-only"] === true,
    ...(typeof master === "string" ? { master } : {}),
    ...(typeof manifests === "string" ? { manifests } : {}),
    ...(typeof stateDir === "string" ? { stateDir } : {}),
    ...(typeof healthz === "number" ? { healthzPort: healthz } : {}),
    ...(typeof metrics === "number" ? { metricsPort: metrics } : {}),
  };
}

function chooseAction(options: FlagDocuments["options"], configuration: AgentConfig["kubeProxyConfiguration"]): Action {
  const { "write-config-to": path, "init-only": initOnly, cleanup } = options;
  if (typeof path === "string") return { kind: "write-config", path, text: toYAML(configuration) };
  if (cleanup === true) return { kind: "cleanup" };
  return { kind: initOnly === true ? "init-only" : "run" };
}

function provenance({ kubeProxy, fairlead, name }: Source): Record<string, string> {
  const given = { ...kubeProxy, ...fairlead };
  const set = leafPaths(given).filter(
    (path) => path !== "kind" && path !== "apiVersion" && isSet(valueAt(given, path)),
  );
  return Object.fromEntries(set.map((path) => [path, name(path)]));
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}
