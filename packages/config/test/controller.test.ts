import { expect, test } from "vitest";
import { type ControllerConfig, formatError, parseControllerArguments } from "../src/index.ts";

function configOf(...argv: readonly string[]): ControllerConfig {
  const parsed = parseControllerArguments(argv, "1.2.3");
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  return parsed.config;
}

function errorsOf(...argv: readonly string[]): readonly string[] {
  const parsed = parseControllerArguments(argv, "1.2.3");
  return parsed.kind === "invalid" ? parsed.errors.map(formatError) : [];
}

test("nothing has to be said: the pod's account, client-go's times, Kubernetes' own slice size", () => {
  expect(configOf()).toEqual({
    jobs: ["networks"],
    client: { allowExecCredentials: false },
    serviceProxyName: "",
    maxEndpointsPerSlice: 100,
    election: {
      namespace: "kube-system",
      name: "fairlead-controller",
      times: { lease: 15_000, renewDeadline: 10_000, retryPeriod: 2_000 },
    },
    metricsBindAddress: { address: "0.0.0.0", port: 10_360 },
    logging: { format: "text", verbosity: 0 },
  });
});

test("what is said counts; an empty value is the default", () => {
  const config = configOf(
    ...["--kubeconfig=/k", "--master=https://192.0.2.1:6443", "--service-proxy-name=storage"],
    ...["--leader-elect=false", "--max-endpoints-per-slice=1000", "--metrics-bind-address=[::]:0"],
    ...["--jobs=gateways,networks", "--logging-format=json", "-v=4", "--leader-elect-resource-name="],
  );
  expect(config).toMatchObject({
    jobs: ["networks", "gateways"],
    client: { kubeconfig: "/k", master: "https://192.0.2.1:6443" },
    serviceProxyName: "storage",
    maxEndpointsPerSlice: 1000,
    metricsBindAddress: { address: "::", port: 0 },
    logging: { format: "json", verbosity: 4 },
  });
  expect(config.election).toBeUndefined();
});

test.each([
  ["--jobs=gateway", /^--jobs=gateway: must be networks or gateways, or both$/],
  ["--max-endpoints-per-slice=1001", /^--max-endpoints-per-slice=1001: must be a whole number from 1 to 1000$/],
  ["--leader-elect-lease-duration=15500ms", /^--leader-elect-lease-duration=15500ms: must be whole seconds/],
  ["--leader-elect-renew-deadline=15s", /^--leader-elect-renew-deadline=15s: must be less than the lease duration$/],
  ["--leader-elect-retry-period=10s", /^--leader-elect-retry-period=10s: must be more than 0s and less than/],
  ["--leader-elect-retry-period=0s", /^--leader-elect-retry-period=0s: must be more than 0s and less than/],
  [
    "--leader-elect-resource-namespace=a/b",
    /^--leader-elect-resource-namespace=a\/b: must be the name of a namespace$/,
  ],
  ["--metrics-bind-address=here", /^--metrics-bind-address=here: must be an IP address and a port/],
  ["--logging-format=xml", /^--logging-format=xml: must be text or json$/],
])("%s says what would be right", (flag, expected) => {
  expect(errorsOf(flag)).toEqual([expect.stringMatching(expected)]);
});

test("--help, --version and unknown flags", () => {
  expect(parseControllerArguments(["--version"], "1.2.3")).toEqual({ kind: "version", text: "Fairlead v1.2.3\n" });
  expect(parseControllerArguments(["--help"], "1.2.3")).toMatchObject({ kind: "help" });
  expect(parseControllerArguments(["--proxy-mode=nftables"], "1.2.3")).toMatchObject({
    kind: "usage-error",
    message: expect.stringContaining("Usage: fairlead-controller [flags]"),
  });
});
