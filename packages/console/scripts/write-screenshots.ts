/** `pnpm screenshots`: takes the pictures of docs/console.md anew, of the page as it is built. */

import { join } from "node:path";
import { endpointSlice, type RawObject, service } from "@fairlead/testkit";
import { openBrowser } from "@fairlead/tooling/browser";
import type { Browser } from "playwright-core";
import type { ConsoleOptions } from "../src/index.ts";
import { calmNodes, cannedAnswers } from "../test/support/answers.ts";
import { LiveObjects, shop } from "../test/support/objects.ts";
import { builtPage, openConsole, visitPage } from "../test/support/page.ts";

const DOCS = join(import.meta.dirname, "..", "..", "..", "docs");

interface Picture {
  readonly name: string;
  readonly place: string;
  readonly heading: string;
  readonly dark?: boolean;
  readonly width?: number;
  readonly height: number;
  /** What has to be there before the picture is taken. */
  readonly shown?: string;
}

const PICTURES: readonly Picture[] = [
  { name: "overview", place: "#/overview", heading: "Overview", height: 640, shown: "The same as a table" },
  {
    name: "services-dark",
    place: "#/services",
    heading: "Services",
    dark: true,
    height: 560,
    shown: "differs on node-a",
  },
  { name: "service", place: "#/service/shop/web", heading: "shop/web", height: 860, shown: "Endpoint" },
  {
    name: "trace-dark",
    place: "#/trace?from=pod&to=shop/web&node=node-a",
    heading: "Trace",
    dark: true,
    height: 640,
    shown: "to 10.144.1.5:8080",
  },
  { name: "flows", place: "#/flows", heading: "Flows", height: 720, shown: "to 200KB in 6 s" },
  { name: "what-if", place: "#/what-if?cidr=10.144.2.0/24", heading: "What if", height: 860, shown: "changes hands" },
  { name: "narrow", place: "#/services", heading: "Services", width: 390, height: 760, shown: "differs on node-a" },
];

const differing: ConsoleOptions["looking"] = () => ({
  ...calmNodes(),
  kernel: async (node) => [{ family: "IPv4", services: node === "node-a" ? [DIFFERENCE] : [] }],
  agent: async () => ({
    mode: "iptables",
    healthy: true,
    version: "0.0.0",
    lastSync: new Date(Date.now() - 4_000).toISOString(),
  }),
});

const DIFFERENCE = {
  service: "shop/cart:http",
  kind: "different" as const,
  findings: [
    { kind: "missing" as const, where: "nat KUBE-SVC-CART", what: "-m comment --comment shop/cart:http -j KUBE-SEP-A" },
  ],
};

/** More services than the tests want, so that the list is one. */
function more(): readonly RawObject[] {
  const names = ["bank/ledger", "bank/web", "shop/cart", "shop/catalog", "shop/search", "monitoring/metrics"];
  return names.flatMap((key, at) => {
    const [namespace = "", name = ""] = key.split("/");
    const creationTimestamp = new Date(Date.now() - (at + 1) * 7 * 3_600_000).toISOString();
    const object = service(name, { namespace, clusterIPs: [`10.96.1.${at}`], ports: [{ name: "http", port: 80 }] });
    const endpoints = [
      { address: `10.144.1.${20 + at}`, nodeName: "node-a" },
      { address: `10.144.2.${20 + at}`, nodeName: "node-b", ready: at % 3 !== 1 },
    ];
    return [
      { ...object, metadata: { ...object.metadata, creationTimestamp } },
      endpointSlice(`${name}-1`, {
        namespace,
        service: name,
        family: "IPv4",
        ports: [{ name: "http", port: 8080 }],
        endpoints,
      }),
    ];
  });
}

async function take(browser: Browser, html: string, picture: Picture): Promise<void> {
  const { name, place, heading, dark = false, width = 1_100, height, shown } = picture;
  const options = { answers: () => cannedAnswers, looking: differing, sourceName: "cluster" };
  await using running = await openConsole(new LiveObjects([...shop, ...more()]), html, options);
  const { page, go } = await visitPage(browser, running.url, { dark, width });
  await page.setViewportSize({ width, height });
  await go(place, heading);
  if (shown !== undefined) await page.getByText(shown).first().waitFor();
  await page.screenshot({ path: join(DOCS, `console-${name}.png`) });
  await page.context().close();
}

await using browser = await openBrowser();
const html = await builtPage();
for (const picture of PICTURES) await take(browser, html, picture);
