/** The flags of fairlead-controller, and what it runs with. */

import { parseSocketAddress } from "./address.ts";
import { type GivenFlags, type Program, readCommandLine } from "./command-line.ts";
import { parseDuration } from "./duration.ts";
import { showValue } from "./report.ts";
import { durationFlag, type FlagType, ipPort, flagTypes as type } from "./table/scalars.ts";
import type { ConfigError, SocketAddress } from "./types.ts";
import { versionAsked } from "./version.ts";

/** What `fairlead-controller` runs with. */
export interface ControllerConfig {
  /** How the API server is reached. */
  readonly client: {
    readonly kubeconfig?: string;
    readonly master?: string;
    readonly allowExecCredentials: boolean;
  };
  /** What it does. Not empty. */
  readonly jobs: readonly ControllerJob[];
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

/** `networks`: EndpointSlices of pods' secondary networks; `gateways`: Services of Gateways. */
export type ControllerJob = (typeof JOBS)[number];

const JOBS = ["networks", "gateways"] as const;

/** What a command line of `fairlead-controller` comes to. */
export type ControllerParseResult =
  | { readonly kind: "run"; readonly config: ControllerConfig; readonly warnings: readonly string[] }
  /** For standard output, exit 0. */
  | { readonly kind: "help" | "version"; readonly text: string }
  /** For standard error, exit 2. */
  | { readonly kind: "usage-error"; readonly message: string }
  /** For standard error, exit 1: every wrong value at once. */
  | { readonly kind: "invalid"; readonly errors: readonly ConfigError[] };

const flag = (name: string, flagType: FlagType, help: string, byDefault?: string) => ({
  ...{ name, type: flagType, help },
  ...(byDefault !== undefined && { default: byDefault }),
});

/** The flags of `fairlead-controller`, named as Kubernetes' controllers name theirs. */
const CONTROLLER: Program = {
  name: "fairlead-controller",
  description:
    "networks: writes EndpointSlices of pods' secondary networks, for Services with the annotation\n" +
    "k8s.v1.cni.cncf.io/service-network and the label service.kubernetes.io/service-proxy-name.\n" +
    "gateways: makes Gateways of class fairlead.dev/gateway, with their TCPRoutes and UDPRoutes, Services.",
  groups: [
    {
      title: "Jobs",
      flags: [flag("jobs", type.string, "What it does, separated by commas: networks, gateways.", "networks")],
    },
    {
      title: "API server",
      flags: [
        flag(
          "kubeconfig",
          type.string,
          "Path of a kubeconfig file. Default, without --master: the service account of the pod.",
        ),
        flag("master", type.string, "URL of the API server. Overrides the server of the kubeconfig."),
        flag(
          "allow-exec-credentials",
          type.boolean,
          "Run the credential plugins that the kubeconfig names (users[].user.exec).",
        ),
      ],
    },
    {
      title: "Secondary networks",
      flags: [
        flag(
          "service-proxy-name",
          type.string,
          "Serve only services whose label service.kubernetes.io/service-proxy-name has this value. Default: any value.",
        ),
        flag(
          "max-endpoints-per-slice",
          type.int32,
          "Maximum number of endpoints of an EndpointSlice, from 1 to 1000.",
          "100",
        ),
      ],
    },
    {
      title: "Leader election",
      flags: [
        flag(
          "leader-elect",
          type.boolean,
          "Write only while holding the lease, so that several replicas can run.",
          "true",
        ),
        flag(
          "leader-elect-lease-duration",
          durationFlag,
          "How long other candidates wait for a leader that does not renew its lease. Whole seconds.",
          "15s",
        ),
        flag(
          "leader-elect-renew-deadline",
          durationFlag,
          "How long a leader that cannot renew its lease keeps writing. Less than the lease duration.",
          "10s",
        ),
        flag(
          "leader-elect-retry-period",
          durationFlag,
          "Time between two attempts to acquire or renew the lease. Less than the renew deadline.",
          "2s",
        ),
        flag("leader-elect-resource-name", type.string, "Name of the Lease.", "fairlead-controller"),
        flag("leader-elect-resource-namespace", type.string, "Namespace of the Lease.", "kube-system"),
      ],
    },
    {
      title: "Process",
      flags: [
        flag(
          "metrics-bind-address",
          ipPort,
          "Address and port that serve /healthz, /livez, /readyz and /metrics.",
          "0.0.0.0:10360",
        ),
        flag("v", type.level, "Log verbosity, from 0 (quiet) to 5 (everything)."),
        flag("logging-format", type.string, "Log format: text or json.", "text"),
        flag("version", type.version, "Print the version, and exit."),
      ],
    },
  ],
};

/**
 * Reads the command line of `fairlead-controller`.
 *
 * @param argv the arguments only, `process.argv.slice(2)`
 * @param version Fairlead's own, for --version
 */
export function parseControllerArguments(argv: readonly string[], version: string): ControllerParseResult {
  const line = readCommandLine(argv, CONTROLLER);
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
function resolve(values: Values): ControllerConfig {
  const [kubeconfig, master] = [values.given("kubeconfig"), values.given("master")];
  const format = values.checked("logging-format", (text) => text === "text" || text === "json", "must be text or json");
  const most = values.checked(
    "max-endpoints-per-slice",
    (text) => Number(text) >= 1 && Number(text) <= 1000,
    "must be a whole number from 1 to 1000",
  );
  const jobs = values.text("jobs").split(",");
  values.require("jobs", jobs.every(isJob), `must be ${JOBS.join(" or ")}, or both`);
  return {
    jobs: JOBS.filter((job) => jobs.includes(job)),
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

function electionOf(values: Values): NonNullable<ControllerConfig["election"]> {
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

function isJob(text: string): text is ControllerJob {
  return JOBS.some((job) => job === text);
}

function isDNSLabel(text: string): boolean {
  return /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text);
}

function bindAddress(text: string): SocketAddress {
  const isAny = text.endsWith(":0");
  const parsed = parseSocketAddress(isAny ? text.replace(/0$/, "1") : text, 1) ?? { address: "0.0.0.0", port: 0 };
  return isAny ? { ...parsed, port: 0 } : parsed;
}

/** Values as given, checked by the flags' types, or their defaults. */
class Values {
  readonly #given = new Map<string, string>();
  readonly errors: ConfigError[] = [];

  constructor(flags: GivenFlags) {
    for (const flag of CONTROLLER.groups.flatMap((group) => group.flags)) {
      const texts = flags.get(flag.name);
      if (texts === undefined) continue;
      const read = flag.type.read(texts);
      if ("problem" in read) this.#fail(flag.name, texts.at(-1), read.problem);
      else if (read.value !== "") this.#given.set(flag.name, String(read.value));
    }
  }

  /** Undefined: it is not given, or empty, or wrong. */
  given(name: string): string | undefined {
    return this.#given.get(name);
  }

  /** As given, or the default that --help shows. */
  text(name: string): string {
    return this.#given.get(name) ?? DEFAULTS.get(name) ?? "";
  }

  checked(name: string, isRight: (text: string) => boolean, form: string): string {
    const text = this.text(name);
    this.require(name, isRight(text), form);
    return text;
  }

  require(name: string, isRight: boolean, form: string): void {
    if (!isRight) this.#fail(name, this.text(name), form);
  }

  #fail(name: string, value: unknown, message: string): void {
    this.errors.push({ field: `--${name}`, value: showValue(value), message });
  }
}

const DEFAULTS = new Map(CONTROLLER.groups.flatMap(({ flags }) => flags).map((flag) => [flag.name, flag.default]));
