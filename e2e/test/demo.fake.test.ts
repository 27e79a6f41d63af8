import { expect, test } from "vitest";
import { play, verdict } from "../src/demo/checks.ts";
import { memoryStage } from "../src/demo/memory-stage.ts";
import { type DemoEnvironment, demoObjects, NGINX_OVN_IP } from "../src/demo/stage.ts";

const silent = () => undefined;

test("the demo proves everything on the kernel in memory", async () => {
  const stage = await memoryStage(demoObjects());
  const lines: string[] = [];
  const findings = await play(stage, (line) => lines.push(line));
  expect(findings.filter(({ ok }) => !ok)).toEqual([]);
  expect(lines).toHaveLength(findings.length + 1);
  expect(verdict(stage, findings, await stage.close())).toMatch(/^Proved on the kernel in memory, (\d+) of \1 checks/);
});

/** Each breaks one thing that the demo claims. */
const broken: readonly {
  readonly name: string;
  readonly wrong: (stage: DemoEnvironment) => Partial<DemoEnvironment>;
}[] = [
  { name: "nginx-ovn", wrong: () => ({ rules: async () => [`-A KUBE-SERVICES -d ${NGINX_OVN_IP}/32`] }) },
  {
    name: "endpoint removed",
    wrong: ({ ask }) => ({
      ask: async (request) => (await ask(request)).map((reply) => ({ ...reply, end: "silence" })),
    }),
  },
  {
    name: "masquerading",
    wrong: ({ ask }) => ({
      ask: async (request) => (await ask(request)).map((reply) => ({ ...reply, seenAs: "10.201.0.99" })),
    }),
  },
  {
    name: "affinity",
    wrong: ({ ask }) => ({
      ask: async (request) =>
        (await ask(request)).map((reply, index) => ({ ...reply, end: index % 2 === 0 ? "web-a1" : "web-b1" })),
    }),
  },
];

for (const { name, wrong } of broken) {
  test(`the demo fails when something is wrong: ${name}`, async () => {
    const stage = await memoryStage(demoObjects());
    // What never comes is not waited for long.
    const findings = await play({ ...stage, patienceMs: 1_000, ...wrong(stage) }, silent);
    expect(findings.filter(({ ok }) => !ok).map((finding) => finding.name)).toContain(name);
    expect(verdict(stage, findings, [])).toMatch(/^Failed:/);
  });
}

test("what is left behind is a failure", async () => {
  const stage = await memoryStage(demoObjects());
  expect(verdict(stage, [], ["process 4711"])).toContain("left behind: process 4711");
});
