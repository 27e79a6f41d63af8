import { type Handler, JSON_TYPE, negotiate, PLAIN_TEXT } from "./app.ts";

/** What runs here, for /statusz. */
export interface Build {
  /** Fairlead's version, without a v. */
  readonly version: string;
  /** The release of kube-proxy whose flags, fields and metrics it has: `1.37`. */
  readonly follows: string;
  /** When the process began, milliseconds since the epoch. */
  readonly startedAt: number;
}

const VERSIONS = ["v1beta1", "v1alpha1"];
const ACCEPTED = "application/json, application/yaml, text/plain";

/** /statusz (KEP-4827): what runs since when, and where else to look. */
export function statusz(build: Build, now: () => number, paths: readonly string[]): Handler {
  const folders = [...new Set(paths.map((path) => `/${path.split("/")[1]}`))].sort();
  const uptime = () => Math.max(0, Math.trunc((now() - build.startedAt) / 1000));
  return zpage({
    kind: "Statusz",
    fields: () => ({
      startTime: `${new Date(build.startedAt).toISOString().slice(0, 19)}Z`,
      uptimeSeconds: uptime(),
      goVersion: "",
      binaryVersion: build.version,
      emulationVersion: build.follows,
      paths: folders,
    }),
    lines: () => [
      "",
      `Started: ${new Date(build.startedAt).toUTCString()}`,
      `Up: ${duration(uptime())}`,
      `Node version: ${process.version}`,
      `Binary version: ${build.version}`,
      `Emulation version: ${build.follows}`,
      `Paths: ${folders.join(" ")}`,
    ],
  });
}

/** /flagz (KEP-4828): the command line with its defaults. */
export function flagz(flags: Readonly<Record<string, string>>): Handler {
  const sorted = Object.entries(flags).sort(([a], [b]) => (a < b ? -1 : 1));
  return zpage({
    kind: "Flagz",
    fields: () => ({ flags: Object.fromEntries(sorted) }),
    lines: () => sorted.map(([name, value]) => `${name}=${value}`),
  });
}

interface Page {
  readonly kind: "Statusz" | "Flagz";
  readonly fields: () => object;
  readonly lines: () => readonly string[];
}

function zpage({ kind, fields, lines }: Page): Handler {
  const page = kind.toLowerCase();
  const head = `
kube-proxy ${page}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.
`;
  return ({ accept }) => {
    const chosen = negotiate(accept, { group: "config.k8s.io", kind, versions: VERSIONS });
    if (chosen === undefined) return notAcceptable;
    if (chosen.kind === "text") return { status: 200, headers: PLAIN_TEXT, body: `${head}${lines().join("\n")}\n` };
    const { mediaType, version } = chosen;
    const object = { kind, apiVersion: `config.k8s.io/${version}`, metadata: { name: "kube-proxy" }, ...fields() };
    const warning = `299 - "This version of the ${page} endpoint is deprecated. Please use a newer version."`;
    const headers = { "Content-Type": mediaType, ...(version === "v1alpha1" && { Warning: warning }) };
    // JSON is YAML.
    return { status: 200, headers, body: `${JSON.stringify(object)}\n` };
  };
}

const notAcceptable = {
  status: 406,
  headers: JSON_TYPE,
  body: `${JSON.stringify({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: `only the following media types are accepted: ${ACCEPTED}`,
    reason: "NotAcceptable",
    code: 406,
  })}\n`,
};

function duration(seconds: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${Math.trunc(seconds / 3600)} hr ${two(Math.trunc(seconds / 60) % 60)} min ${two(seconds % 60)} sec`;
}
