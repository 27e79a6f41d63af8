/** Suites of others: Kubernetes' own specs of services and DNS, and the Gateway API's conformance suite. */

import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { providePrograms } from "@fairlead/lab/control-plane/programs";
import type { Cluster } from "@fairlead/lab/provider/cluster";
import { gatewaySuite as gatewayPrograms, suite } from "@fairlead/lab/provider/kind/machine";
import { parse } from "yaml";
import { backToFairlead, needsKubelets, removeProxy, whole } from "./operator.ts";
import type { Figures, Spec } from "./spec.ts";

interface Chosen {
  readonly focus: string;
  readonly skip: string;
  /** How many the focus must find at least, so that a changed name does not make a green run of nothing. */
  readonly atLeast: number;
}

/** What every conformant cluster must pass. */
const CONFORMANCE: Chosen = { focus: "\\[sig-network\\].*\\[Conformance\\]", skip: "\\[Feature:", atLeast: 40 };

/** The others that a cluster without cloud, internet and alpha features can have. */
const others: Chosen = {
  focus: "\\[sig-network\\]",
  skip: [
    ...["\\[Conformance\\]", "\\[Feature:", "\\[FeatureGate", "\\[Alpha\\]"],
    ...["Internet", "\\[Disruptive\\]", "LoadBalancers", "IPv6DualStack", "\\[Slow\\]"],
  ].join("|"),
  atLeast: 60,
};

export const sigNetwork: readonly Spec[] = [
  spec("Kubernetes' Conformance specs of sig-network", "sig-network", CONFORMANCE),
  spec("Kubernetes' other specs of sig-network", "sig-network-others", others),
  spec("Kubernetes' other specs of sig-network, with kube-proxy", "sig-network-others", others, "kube-proxy"),
];

interface GinkgoResult {
  readonly passed: number;
  readonly failed: number;
  readonly ran: number;
  readonly failures: readonly string[];
}

const COUNTS = /-- (\d+) Passed \| (\d+) Failed \|/;
const RAN = /^Ran (\d+) of \d+ Specs/m;
const FAILURE = /^\s*\[(?:FAIL|PANICKED|TIMEDOUT|INTERRUPTED)\] (.*)$/gm;

/** Reads Ginkgo's own words, without colors; undefined: it has not come to its summary. */
export function readGinkgo(output: string): GinkgoResult | undefined {
  const [, passed, failed] = COUNTS.exec(output) ?? [];
  const [, ran] = RAN.exec(output) ?? [];
  if (passed === undefined || failed === undefined || ran === undefined) return undefined;
  const summary = output.slice(output.lastIndexOf("Summarizing"));
  const failures = Number(failed) === 0 ? [] : [...summary.matchAll(FAILURE)].map(([, name = ""]) => name.trim());
  return { passed: Number(passed), failed: Number(failed), ran: Number(ran), failures };
}

type Proxy = "fairlead" | "kube-proxy";

const AT_ONCE = 4;
const RUN_MS = 40 * 60_000;

function spec(name: string, suite: Spec["suite"], chosen: Chosen, proxy: Proxy = "fairlead"): Spec {
  return {
    name,
    suite,
    eachFamily: false,
    unfit: needsKubelets,
    run: async (scene, cluster) => {
      if (proxy === "kube-proxy") {
        scene.later(() => backToFairlead(cluster));
        await whole(cluster).addKubeProxy();
        await removeProxy(whole(cluster), "fairlead");
      }
      return run(cluster, chosen);
    },
  };
}

async function run(cluster: Cluster, chosen: Chosen): Promise<Figures> {
  const { apiServer, nodes } = cluster;
  const kubernetes = whole(cluster);
  const programs = await providePrograms(suite, kubernetes.version, console.log);
  const log = `${kubernetes.kubeconfig}.ginkgo.log`;
  const argv = [
    ...[programs.ginkgo, "run", `--procs=${AT_ONCE}`, "--no-color", "--silence-skips"],
    ...[`--timeout=${RUN_MS / 60_000}m`, `--focus=${chosen.focus}`, `--skip=${chosen.skip}`],
    ...[programs["e2e.test"], "--", "--provider=skeleton", "--disable-log-dump"],
    ...[`--kubeconfig=${kubernetes.kubeconfig}`, `--num-nodes=${nodes.length}`],
  ];
  const settings = [
    // Specs call kubectl by its name.
    `PATH=${dirname(kubernetes.kubectlProgram)}:/usr/sbin:/usr/bin:/sbin:/bin`,
    // They leave folders behind.
    `TMPDIR=${dirname(kubernetes.kubeconfig)}`,
  ];
  const run = apiServer.run(["env", ...settings, "sh", "-c", INTO_FILE, "sh", log, ...argv], {
    timeoutMs: RUN_MS + 60_000,
  });
  // With a failed spec the process fails, too; its output says more.
  await run.catch(() => {});
  const output = await readFile(log, "utf8");
  return judge(readGinkgo(output), output, chosen.atLeast);
}

const INTO_FILE = 'exec >"$1" 2>&1 && shift && exec "$@"';

function judge(result: GinkgoResult | undefined, output: string, atLeast: number): Figures {
  if (result === undefined) throw new Error(`Kubernetes' specs did not come to an end:\n${output.slice(-4000)}`);
  const { passed, failed, ran, failures } = result;
  if (failed > 0) throw new Error([`${failed} of ${ran} failed:`, ...failures].join("\n  "));
  if (ran < atLeast) throw new Error(`only ${ran} specs were chosen, ${atLeast} are there at least`);
  return { specs: String(passed) };
}

/** Tests of core features that need listeners which end HTTP or TLS, and why. */
export const SKIPPED_GATEWAY_TESTS: Readonly<Record<string, string>> = {
  GatewayInvalidRouteKind: "its listeners are HTTP",
  GatewayInvalidTLSConfiguration: "its listeners are HTTPS",
  GatewayListenerUnsupportedProtocol: "its supported listener is HTTP",
  GatewayModifyListeners: "it adds an HTTP and removes an HTTPS listener",
  GatewayObservedGenerationBump: "its listeners are HTTP",
  GatewaySecretInvalidReferenceGrant: "its listener is HTTPS",
  GatewaySecretMissingReferenceGrant: "its listener is HTTPS",
  GatewaySecretReferenceGrantAllInNamespace: "its listener is HTTPS",
  GatewaySecretReferenceGrantSpecific: "its listener is HTTPS",
  TCPRouteInvalidNonTCPListener: "its Gateway has to be programmed with an HTTP listener only",
};

/** Profiles, and how many tests of each pass at least, so that a suite without tests is not a success. */
const PROFILES = { "GATEWAY-TCP": 8, "GATEWAY-UDP": 10 } as const;
const CLASS = "gateway-conformance";
/** In seconds, of those whose length the suite leaves to the implementation: only what hangs takes all of it. */
const TIMEOUTS = Object.entries({
  ...{ CreateTimeout: 300, DeleteTimeout: 120, GetTimeout: 120, GatewayMustHaveAddress: 600, RequestTimeout: 60 },
  ...{ GatewayMustHaveCondition: 600, GatewayStatusMustHaveListeners: 300, GWCMustBeAccepted: 600 },
  ...{ TCPRouteMustHaveCondition: 300, UDPRouteMustHaveCondition: 300, RouteMustHaveParents: 300 },
  ...{ NamespacesMustBeReady: 900, LatestObservedGenerationSet: 300, GatewayListenersMustHaveConditions: 300 },
})
  .map((pair) => pair.join(":"))
  .join(";");

export const gatewaySuite: Spec = {
  name: "the Gateway API's conformance suite: GATEWAY-TCP and GATEWAY-UDP",
  suite: "gateway",
  eachFamily: false,
  unfit: needsKubelets,
  run: async (_, cluster) => {
    const kubernetes = whole(cluster);
    const { kubeconfig, version } = kubernetes;
    const programs = await providePrograms(gatewayPrograms, version, console.log);
    await kubernetes.addLoadBalancer();
    await kubernetes.addGateways();
    const metadata = { name: CLASS };
    const spec = { controllerName: "fairlead.dev/gateway" };
    const ofClass = { apiVersion: "gateway.networking.k8s.io/v1", kind: "GatewayClass", metadata, spec };
    await kubernetes.kubectl(["apply", "-f", "-"], { input: JSON.stringify(ofClass) });
    // The suite reads in its status which features there are.
    const isAccepted = ["wait", "--for=condition=Accepted", `gatewayclass/${CLASS}`, "--timeout=300s"];
    await kubernetes.kubectl(isAccepted, { timeoutMs: 310_000 });
    const [log, file] = [`${kubeconfig}.gateways.log`, `${kubeconfig}.gateways.yaml`];
    const argv = [
      ...[programs["gateways.test"], "-test.v", `-test.timeout=${RUN_MS / 60_000}m`, `-gateway-class=${CLASS}`],
      ...[`-conformance-profiles=${Object.keys(PROFILES).join()}`, `-report-output=${file}`],
      `-skip-tests=${Object.keys(SKIPPED_GATEWAY_TESTS).join()}`,
      `-timeout-config-overrides=${TIMEOUTS}`,
      ...["-organization=fairlead-dev", "-project=fairlead", "-url=https://github.com/fairlead-dev/fairlead"],
      ...[`-version=${cluster.mode}`, "-contact=https://github.com/fairlead-dev/fairlead/issues"],
    ];
    const env = ["env", `KUBECONFIG=${kubeconfig}`, "sh", "-c", INTO_FILE, "sh", log, ...argv] as const;
    await cluster.apiServer.run(env, { timeoutMs: RUN_MS + 60_000 }).catch(() => {});
    const output = await readFile(log, "utf8");
    const report = await readFile(file, "utf8").catch(() => "");
    console.log(report);
    return gatewayFigures(report, output);
  },
};

interface ProfileReport {
  readonly name: keyof typeof PROFILES;
  readonly core: {
    readonly statistics: { readonly Passed: number; readonly Failed: number; readonly Skipped: number };
    readonly failedTests?: readonly string[];
  };
}

/** Reads the suite's report. @throws Error where a test failed, or too few passed */
export function gatewayFigures(report: string, output: string): Figures {
  const { profiles = [] }: { profiles?: readonly ProfileReport[] } = parse(report) ?? {};
  const failed = profiles.flatMap(({ core }) => core.failedTests ?? []);
  const lines = output.split("\n").filter((line) => /^\s*(?:--- FAIL|\S+\.go:\d+: +\S*Error)|^panic|Error:/.test(line));
  const end = lines.length === 0 ? output.slice(-4000) : lines.slice(0, 60).join("\n");
  if (failed.length > 0) throw new Error(`failed: ${[...new Set(failed)].join(", ")}\n${end}`);
  const counts = new Map(profiles.map(({ name, core }) => [name, core.statistics]));
  return Object.fromEntries(
    Object.entries(PROFILES).map(([name, atLeast]) => {
      const { Passed: passed = 0, Skipped: skipped = 0 } = counts.get(name as keyof typeof PROFILES) ?? {};
      if (passed < atLeast) throw new Error(`wanted ${atLeast} tests of ${name} to pass; ${passed} did\n${end}`);
      return [name, `${passed} passed, 0 failed, ${skipped} skipped`];
    }),
  );
}
