import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "@fairlead/base";
import { lines } from "@fairlead/kernel";
import { tlsFolder } from "@fairlead/testkit/api-server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AGENT_NAMES } from "../src/image/layers.ts";
import { deployDir } from "../src/paths.ts";
import { argumentsOf, only, parseManifests } from "../test/support/manifests.ts";
import { ENDPOINT_CHAIN, SERVICE_CHAIN } from "./api-server.ts";
import { openImage, type UnpackedImage } from "./unpacked-image.ts";

/** The command lines of deploy/base in the image, with its ConfigMap, an API server and a service account. */
const TOKEN = "service-account";
const base = (name: string) => join(deployDir, "base", name);
const stop = new AbortController();
let image: UnpackedImage;
let agent: Promise<void> | undefined;

beforeAll(async () => {
  image = await openImage();
  const program = join(import.meta.dirname, "light-api-server-main.ts");
  const node = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", program, TOKEN] as const;
  const server = lines(image.runner.stream(node, { signal: stop.signal, timeoutMs: 0 }));
  const { value: address } = await server[Symbol.asyncIterator]().next();
  await writePod(image.pod, String(address));
});
afterAll(async () => {
  stop.abort();
  await agent;
  await image?.dispose();
});

async function writePod(pod: string, server: string): Promise<void> {
  const [config, account] = [join(pod, "config"), join(pod, "serviceaccount")];
  for (const folder of [config, account]) await mkdir(folder);
  await copyFile(base("config.conf"), join(config, "config.conf"));
  const kubeconfig = await readFile(base("kubeconfig.conf"), "utf8");
  await writeFile(join(config, "kubeconfig.conf"), kubeconfig.replace("https://api.cluster.example:6443", server));
  await copyFile(join(tlsFolder, "ca.pem"), join(account, "ca.crt"));
  await writeFile(join(account, "token"), TOKEN);
}

async function podSpec() {
  return only(parseManifests(await readFile(base("daemonset.yaml"), "utf8")), "DaemonSet")["spec"].template.spec;
}

test("the DaemonSet's init container ends", async () => {
  const [init] = (await podSpec()).initContainers;
  expect(await image.run(AGENT_NAMES[0], ...argumentsOf(init))).not.toMatch(/^[EF]\d{4} /m);
});

test("the DaemonSet's container serves and is healthy", async () => {
  const [container] = (await podSpec()).containers;
  const argv = image.inContainer(AGENT_NAMES[0], ...argumentsOf(container));
  const [{ containerPort }] = container.ports;
  const log: string[] = [];
  agent = follow(image.runner.stream(argv, { signal: stop.signal, timeoutMs: 0 }), log);
  const retry = ["--retry", "20", "--retry-delay", "1", "--retry-all-errors", "--fail"];
  for (const { path } of [container.readinessProbe.httpGet, container.livenessProbe.httpGet]) {
    const probe = ["curl", "--silent", ...retry, `http://192.0.2.10:${containerPort}${path}`] as const;
    await image.runner.run(probe).catch((error: unknown) => {
      throw new Error([errorText(error), ...log].join("\n"));
    });
  }
  expect(await image.run("iptables-nft", "-t", "nat", "-S", SERVICE_CHAIN)).toContain(`-j ${ENDPOINT_CHAIN}`);
});

/** Resolves once the program has ended, however. */
async function follow(output: AsyncIterable<string>, log: string[]): Promise<void> {
  try {
    for await (const line of lines(output)) log.push(line);
  } catch (error) {
    log.push(errorText(error));
  }
}
