import { expect, test } from "vitest";
import { fixture, parseFile } from "./parse.ts";

/** What kube-proxy v1.37.1 said to files with these lines (`--config`, `--write-config-to`). */
const recorded: { readonly verdicts: readonly { readonly lines: string; readonly verdict: "accepts" | "refuses" }[] } =
  JSON.parse(fixture("verdicts.json"));

/** Where ours is another one, and why. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  "bindAddress: 10.0.0.01": "kube-proxy takes a leading zero for decimal, others for octal: nobody can mean it",
  "detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: a name with spaces}":
    "no interface can have that name, and it would go into rules",
  "mode: ipvs\nipvs: {scheduler: fastest}": "the kernel would refuse it with every sync",
  "hostnameOverride: $(NODE_NAME)": "a variable that was not replaced: no Node can be called so",
  "featureGates: {NoSuchGate: true}": "gates of other releases of kube-proxy are a warning here",
};

test.each(recorded.verdicts)("$lines: $verdict", ({ lines, verdict }) => {
  const ours = parseFile(lines).kind === "run" ? "accepts" : "refuses";
  expect(ours === verdict).toBe(!Object.hasOwn(DIFFERENCES, lines));
});

test("there are enough of them, and no difference without its file", () => {
  expect(recorded.verdicts.filter(({ verdict }) => verdict === "refuses").length).toBeGreaterThanOrEqual(40);
  const files = recorded.verdicts.map(({ lines }) => lines);
  expect(files).toEqual(expect.arrayContaining(Object.keys(DIFFERENCES)));
});
