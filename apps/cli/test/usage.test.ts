import { MODES } from "@fairlead/inspect";
import { goldenScenario } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { COMMANDS } from "../src/commands/table.ts";
import { agentOptions, nodeAddressOption } from "../src/facts/options.ts";
import { fileOf } from "./support/files.ts";
import { fairlead } from "./support/run.ts";

const names = COMMANDS.map(({ name }) => name).join(", ");

describe("a command that there is not", () => {
  test.each([[["theatre"]], [["theatre", "--help"]], [["theatre", "-h"]], [["help", "theatre"]]])(
    "%j: exit code 2, and what there is",
    async (argv) => {
      const { code, out, err } = await fairlead(argv);
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toBe(`unknown command 'theatre'\nUsage: fairlead COMMAND [options]\nCommands: ${names}\n`);
    },
  );

  test("a similar one is named", async () => {
    const { code, err } = await fairlead(["explian", "web"]);
    expect(err).toMatch(/^unknown command 'explian'\n\(Did you mean explain\?\)\n/);
    expect(code).toBe(2);
  });
});

test.each(COMMANDS.filter(({ options }) => "on" in options && "node" in options))(
  "$name: the plan of one node and the kernel of another one are not compared",
  async ({ name, arguments: args }) => {
    const given = args.filter(({ optional = false }) => !optional).map(() => "shop/web");
    const { code, out, err } = await fairlead([name, ...given, "--node", "node-a", "--on", "node-b"]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(/^--node=node-a, --on=node-b: two nodes/);
  },
);

describe("help", () => {
  test.each(COMMANDS)("help $name is $name --help", async ({ name }) => {
    expect(await fairlead(["help", name])).toEqual(await fairlead([name, "--help"]));
  });

  test("by itself it is all commands", async () => {
    expect(await fairlead(["help"])).toEqual(await fairlead(["--help"]));
    expect((await fairlead(["--help"])).out).toMatch(/^ {2}help /m);
  });
});

test.each([
  [["plan", "--odd"], "unknown option '--odd'", "plan [options]", "plan"],
  [["explain"], "missing required argument 'target'", "explain <target> [gateway] [options]", "explain"],
  [["trace", "--to", "x?"], "--to=x?: must be ADDRESS:PORT/PROTOCOL", "trace [options]", "trace"],
  [["completion", "tcsh"], '"tcsh": must be bash', "completion <shell> [options]", "completion"],
  [["plan", "-o", "odd"], "--output=odd: must be rules or json or yaml or summary", "plan [options]", "plan"],
])("an error of %j comes with that command's own usage", async (argv, message, usage, name) => {
  const { code, err } = await fairlead(argv);
  expect(err.startsWith(message)).toBe(true);
  expect(err.endsWith(`\nUsage: fairlead ${usage}\nAll options: fairlead ${name} --help\n`)).toBe(true);
  expect(code).toBe(2);
});

test("plan -o yaml is plan -o json", async () => {
  const stdin = JSON.stringify(goldenScenario("09-loadbalancer").objects);
  const plan = (output: string) =>
    fairlead(["plan", "-f", "-", "--node", "node-a", "--cluster-cidr", "10.144.0.0/16", "-o", output], { stdin });
  expect(parse((await plan("yaml")).out)).toEqual(JSON.parse((await plan("json")).out));
});

describe("manifests with objects that no server would take", () => {
  const plan = (manifest: string, ...more: readonly string[]) =>
    fairlead(["plan", "-f", "-", "--node", "node-a", "--mode", "iptables", ...more], { stdin: manifest });

  test.each([
    [
      "without apiVersion",
      "kind: Service\nmetadata: {name: web}\n",
      "standard input: Service web: apiVersion is missing: must be v1",
    ],
    [
      "without name",
      "apiVersion: v1\nkind: Service\nmetadata: {namespace: shop}\n",
      "standard input: a Service without metadata.name",
    ],
    [
      "of another version",
      "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: web-1}\n",
      'standard input: EndpointSlice web-1: apiVersion "discovery.k8s.io/v1beta1" must be discovery.k8s.io/v1',
    ],
  ])("%s: exit code 3, and nothing is planned", async (_, manifest, message) => {
    const { code, out, err } = await plan(manifest);
    expect({ code, out, err }).toEqual({ code: 3, out: "", err: `${message}\n` });
  });

  test("other kinds, and kinds of the same name of others, are passed over", async () => {
    const others =
      "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: web}\n---\napiVersion: apps/v1\nkind: Deployment\n";
    const err = "-f - has no usable Service: this is what a node has without any\n";
    expect(await plan(others)).toMatchObject({ code: 0, err });
  });

  test("a wrong value stands there once, quoted once", async () => {
    const { err } = await plan(
      "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {clusterIP: 10.96.0.300, ports: [{port: 80}]}\n",
    );
    expect(err.split("\n")).toEqual([
      'Service shop/web: spec.clusterIPs[0] "10.96.0.300" must be an IPv4 or IPv6 address',
      "-f - has no usable Service: this is what a node has without any",
      "",
    ]);
  });
});

test.each([
  ["--request-timeout", "5parsecs", "must be a time such as 5s"],
  ["--server", "nope", "must be a URL such as"],
])("%s=%s is a mistake in the command line, not a missing cluster", async (flag, value, right) => {
  const { code, err } = await fairlead(["plan", flag, value]);
  expect(err).toMatch(new RegExp(`^${flag}=${value}: ${right}`));
  expect(code).toBe(2);
});

test("a file that is not a configuration is not shown", async () => {
  const file = fileOf("root:x:0:0:root:/root:/bin/bash\n", "passwd");
  const { code, err } = await fairlead(["plan", "-f", "-", "--config", file]);
  expect(err).toBe(`${file}: a document must be a block of fields (kind: KubeProxyConfiguration …), and one is text\n`);
  expect(code).toBe(3);
});

test.each([
  [["plan", "-f", "/does/not/exist"], "-f /does/not/exist: no such file or folder"],
  [["plan", "-f", "/dev/null"], "-f /dev/null is neither a file nor a folder"],
  [
    ["plan", "-f", "-", "--config", "/does/not/exist"],
    "--config=/does/not/exist: cannot be read: no such file or folder",
  ],
  [["plan", "-f", "-", "--memory", "/does/not/exist"], "--memory=/does/not/exist: no such file or folder"],
  [
    ["trace", "--rules", "/does/not/exist", "--from", "10.0.0.9", "--to", "10.0.0.1:80"],
    "--rules=/does/not/exist: no such file or folder",
  ],
  [["trace", "--rules", "/", "--from", "10.0.0.9", "--to", "10.0.0.1:80"], "--rules=/: is a folder, not a file"],
  [["explain", "web", "-f", "-", "--rules", "/does/not/exist"], "--rules=/does/not/exist: no such file or folder"],
  [["diff", "/does/not/exist", "/dev/null"], "/does/not/exist: no such file or folder"],
  [
    ["plan", "--kubeconfig", "/does/not/exist"],
    "no cluster (or give manifests with -f): --kubeconfig /does/not/exist: no such file or folder",
  ],
])("%j: a file that cannot be read, in words", async (argv, message) => {
  expect(await fairlead(argv)).toEqual({ code: 3, out: "", err: `${message}\n` });
});

describe("what plan prints is what --rules reads", () => {
  const { objects } = goldenScenario("09-loadbalancer");
  const node = ["--node", "node-a", "--node-address", "10.201.0.10", "--cluster-cidr", "10.144.0.0/16"];
  const trace = ["--from", "10.144.1.9", "--to", "203.0.113.9:80", "-o", "json"];

  test.each(["iptables", "ipvs"])("trace, in %s mode", async (mode) => {
    const stdin = JSON.stringify(objects);
    const { out: plan } = await fairlead(["plan", "-f", "-", "--mode", mode, ...node], { stdin });
    const traced = (rules: string) => ["trace", "--rules", rules, "--node-address", "10.201.0.10", ...trace];
    const { out, err, code } = await fairlead(traced(fileOf(plan)));
    expect({ err, code }).toEqual({ err: "", code: 0 });
    interface Traced {
      readonly outcomes: readonly {
        readonly destination: { readonly address: string };
        readonly visits: readonly { readonly line?: number; readonly text: string }[];
      }[];
    }
    const { outcomes }: Traced = JSON.parse(out);
    expect(outcomes.length).toBeGreaterThan(0);
    for (const { destination, visits } of outcomes) {
      expect(destination.address).toMatch(/^10\.144\./);
      // Lines are those of the file, whatever other programs' parts stand before.
      for (const { line = 0, text } of visits) expect(plan.split("\n")[line - 1]).toContain(text);
    }
    expect((await fairlead(traced("-"), { stdin: plan })).out).toBe(out);
  });

  test("explain and verify", async () => {
    const stdin = JSON.stringify(objects);
    const { out: plan } = await fairlead(["plan", "-f", "-", ...node], { stdin });
    const file = fileOf(plan);
    const explained = await fairlead(["explain", "lb", "-f", "-", "--rules", file, ...node], { stdin });
    expect(explained.out).toMatch(/^Kernel: agrees, \d+ kinds of packets traced$/m);
    const verified = await fairlead(["verify", "-f", "-", "--rules", file, ...node], { stdin });
    expect(verified).toMatchObject({ code: 0, out: "OK: nothing differs (IPv4)\n" });
  });

  test("a plan of the other family is refused", async () => {
    const { err, code } = await fairlead(["trace", "--rules", "-", "--from", "10.0.0.9", "--to", "10.0.0.1:80"], {
      stdin: "# ip6tables-restore --noflush\n*nat\nCOMMIT\n",
    });
    expect(err).toBe("--rules=-: rules of IPv6, and the packet is IPv4\n");
    expect(code).toBe(3);
  });
});

test("fairlead version is --version, and as JSON for programs", async () => {
  const { out, code } = await fairlead(["version"]);
  expect({ out, code }).toEqual({ out: (await fairlead(["--version"])).out, code: 0 });
  expect(JSON.parse((await fairlead(["version", "-o", "json"])).out)).toEqual({
    version: out.trim().replace("Fairlead v", ""),
  });
});

describe("as kubectl's users type it", () => {
  const stdin = JSON.stringify(goldenScenario("09-loadbalancer").objects);

  test.each([
    [["--node", "node-a", "-f", "-", "plan", "-o", "json"]],
    [["--node=node-a", "plan", "-f", "-", "-o", "json"]],
    [["-f", "-", "--node", "node-a", "-o", "json", "plan"]],
  ])("%j: options may stand before the command", async (argv) => {
    const { out } = await fairlead(["plan", "-f", "-", "--node", "node-a", "-o", "json"], { stdin });
    expect(await fairlead(argv, { stdin })).toMatchObject({ code: 0, out });
  });

  test("the value of an option is not a command", async () => {
    const { err, code } = await fairlead(["--context", "status", "--kubeconfig", "/nowhere", "status"]);
    expect(err).toContain("/nowhere");
    expect(code).toBe(3);
  });

  test.each([
    ["status", "--token=x", "Of kubectl's global options there are --kubeconfig, --context, --server, --as,"],
    ["status", "-v=6", "Of kubectl's global options there are --kubeconfig, --context, --server, --as,"],
    ["explain", "-A", "All namespaces are looked at unless -n names one; a SERVICE is NAMESPACE/NAME.\n"],
    ["doctor", "--node=node-a", "doctor looks at this host, or at another node with --on NODE.\n"],
    ["doctor", "-f", "doctor looks at a node and not at manifests: fairlead explain -f,"],
  ])("%s %s: it says what to use", async (command, option, hint) => {
    const { err, code } = await fairlead([command, option]);
    expect(err).toMatch(/^unknown option /);
    expect(err.split("\n").slice(1).join("\n")).toContain(hint);
    expect(code).toBe(2);
  });
});

test("what a terminal would obey is not printed in messages", async () => {
  const rules = "\u001b[31mnot rules\u0007\n";
  const { err } = await fairlead(["trace", "--rules", "-", "--to", "10.96.0.1:80", "--from", "192.0.2.1"], {
    stdin: rules,
  });
  expect(err).toContain("\\u001b");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
  expect(err).not.toMatch(/[\u0000-\u0008\u000b-\u001f]/);
});

test("--mode offers every mode that plans can be made for", () => {
  expect(agentOptions.mode.choices).toEqual(MODES);
});

const { read } = nodeAddressOption("An address.");

test("addresses are given one by one or with commas between, and in one spelling", () => {
  expect(read(["192.0.2.10,2001:DB8:0::10", "192.0.2.11"])).toEqual(["192.0.2.10", "2001:db8::10", "192.0.2.11"]);
  expect(read([])).toEqual([]);
});

test.each(["node-a", "192.0.2", "192.0.2.1/24", "192.0.2.1,"])("%s is refused as an address", (given) => {
  expect(() => read([given])).toThrow(/^--node-address=.*: must be an address, such as 192\.0\.2\.10 or 2001:db8::10$/);
});
