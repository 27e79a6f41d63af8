import { parseSocketAddress } from "../address.ts";
import { readCommandLine } from "../command-line.ts";
import { parseDuration } from "../duration.ts";
import type { ConfigError } from "../parse-types.ts";
import type { SocketAddress } from "../types.ts";
import { versionAsked } from "../version.ts";
import { SLICES } from "./flags.ts";
import { Values } from "./values.ts";

/** What `fairlead-slices` runs with. */
export interface SlicesConfig {
  /** How the API server is reached. */
  readonly client: {
    readonly kubeconfig?: string;
    readonly master?: string;
    readonly allowExecCredentials: boolean;
  };
  /** Empty: services of any proxy that has a name. */
  readonly serviceProxyName: string;
  /** 1 to 1,000. */
  readonly maxEndpointsPerSlice: number;
  /** Absent: this process is the only one. */
  readonly election?: {
    readonly namespace: string;
    readonly name: string;
    /** Milliseconds: lease > renewDeadline > retryPeriod > 0. */
    readonly times: { readonly lease: number; readonly renewDeadline: number; readonly retryPeriod: number };
  };
  /** Where metrics are served. */
  readonly metricsBindAddress: SocketAddress;
  /** Lines for people or as JSON, and klog's level. */
  readonly logging: { readonly format: "text" | "json"; readonly verbosity: number };
}

/** What a command line of `fairlead-slices` comes to. */
export type SlicesParseResult =
  | { readonly kind: "run"; readonly config: SlicesConfig; readonly warnings: readonly string[] }
  /** For standard output, exit 0. */
  | { readonly kind: "help" | "version"; readonly text: string }
  /** For standard error, exit 2. */
  | { readonly kind: "usage-error"; readonly message: string }
  /** For standard error, exit 1: every wrong value at once. */
  | { readonly kind: "invalid"; readonly errors: readonly ConfigError[] };

/**
 * Reads the command line of `fairlead-slices`.
 *
 * @param argv the arguments only, `process.argv.slice(2)`
 * @param version Fairlead's own, for --version
 */
export function parseSlicesArguments(argv: readonly string[], version: string): SlicesParseResult {
  const line = readCommandLine(argv, SLICES);
  if (line.kind !== "flags") return line;
  const values = new Values(line.flags);
  const asked = versionAsked(values.given("version"), version);
  if (asked.kind === "print") return { kind: "version", text: asked.text };
  const config = resolve(values);
  return values.errors.length > 0
    ? { kind: "invalid", errors: values.errors }
    : { kind: "run", config, warnings: asked.warnings };
}

/** What it gives while there are errors is not to be used. */
function resolve(values: Values): SlicesConfig {
  const [kubeconfig, master] = [values.given("kubeconfig"), values.given("master")];
  const format = values.checked("logging-format", (text) => text === "text" || text === "json", "must be text or json");
  const most = values.checked(
    "max-endpoints-per-slice",
    (text) => Number(text) >= 1 && Number(text) <= 1000,
    "must be a whole number from 1 to 1000",
  );
  return {
    client: {
      ...(kubeconfig !== undefined && { kubeconfig }),
      ...(master !== undefined && { master }),
      allowExecCredentials: values.given("allow-exec-credentials") === "true",
    },
    serviceProxyName: values.given("service-proxy-name") ?? "",
    maxEndpointsPerSlice: Number(most),
    ...(values.text("leader-elect") === "true" && { election: electionOf(values) }),
    // The flag's type has checked the form; port 0 is one that the kernel chooses.
    metricsBindAddress: bindAddress(values.text("metrics-bind-address")),
    logging: { format: format === "json" ? "json" : "text", verbosity: Number(values.given("v") ?? 0) },
  };
}

function electionOf(values: Values): NonNullable<SlicesConfig["election"]> {
  const ms = (name: string) => parseDuration(values.text(name)) ?? 0;
  const [lease, renewDeadline, retryPeriod] = [
    ms("leader-elect-lease-duration"),
    ms("leader-elect-renew-deadline"),
    ms("leader-elect-retry-period"),
  ];
  const isWhole = lease >= 1000 && lease % 1000 === 0;
  values.require("leader-elect-lease-duration", isWhole, "must be whole seconds, such as 15s");
  values.require("leader-elect-renew-deadline", renewDeadline < lease, "must be less than the lease duration");
  const isInTime = retryPeriod > 0 && retryPeriod < renewDeadline;
  values.require("leader-elect-retry-period", isInTime, "must be more than 0s and less than the renew deadline");
  return {
    namespace: values.checked("leader-elect-resource-namespace", isDNSLabel, "must be the name of a namespace"),
    name: values.checked("leader-elect-resource-name", isDNSLabel, "must be lower case letters, digits and dashes"),
    times: { lease, renewDeadline, retryPeriod },
  };
}

function isDNSLabel(text: string): boolean {
  return /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text);
}

function bindAddress(text: string): SocketAddress {
  const isAny = text.endsWith(":0");
  const parsed = parseSocketAddress(isAny ? text.replace(/0$/, "1") : text, 1) ?? { address: "0.0.0.0", port: 0 };
  return isAny ? { ...parsed, port: 0 } : parsed;
}
