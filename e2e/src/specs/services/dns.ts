import { DNS_PORT, type DnsRecord, type Pod } from "@fairlead/lab/provider/cluster";
import { expectAnswers } from "../expect.ts";
import { nearAndFar } from "../near-and-far.ts";
import { able, needs } from "../needs.ts";
import type { Spec } from "../spec.ts";

const DNS_PORTS = [
  { name: "dns", port: 53, targetPort: DNS_PORT, protocol: "UDP" },
  { name: "dns-tcp", port: 53, targetPort: DNS_PORT, protocol: "TCP" },
];

/** Longer than any datagram that the server sends: resolvers ask again over TCP. */
const LONG_TEXT = "fairlead ".repeat(200).trim();

const MOST_SHOWN = 200;

/** By provider. */
const BRINGS_DNS: Readonly<Record<string, string>> = {
  netns: "apt-get install dnsmasq-base",
  kind: "its server is CoreDNS, which sig-network's specs ask",
};

export const dns: Spec = {
  name: "DNS: a real server behind a service, over UDP and for long answers TCP; lookups go on when one of two is gone",
  suite: "services",
  unfit: (shape) => needs("dns", BRINGS_DNS[shape.provider])(shape),
  run: async (scene) => {
    const [, second] = scene.nodes;
    const { near, far, caller } = await nearAndFar(scene, "dns");
    const web = await scene.pod({ node: second, app: "web" });
    const { clusterIP } = await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    const name = `web.${scene.namespace}.svc.cluster.local`;
    const type = scene.family === "IPv4" ? "A" : "AAAA";
    const records: readonly DnsRecord[] = [
      { name, type, value: clusterIP },
      { name, type: "TXT", value: LONG_TEXT },
    ];
    await Promise.all([near, far].map((server) => able(server.serveDns)(records)));
    const { clusterIP: server } = await scene.service("dns", { selector: { app: "dns" }, ports: DNS_PORTS });
    const address = (from: Pod) => able(from.lookUp)(server, { name, type }).then(String, String);
    await scene.until(`${name} at ${clusterIP}`, async () => {
      const came = await address(caller);
      return came === clusterIP ? undefined : came;
    });
    await scene.until(`${LONG_TEXT.length} characters of text`, async () => {
      const text = await able(caller.lookUp)(server, { name, type: "TXT" }).then((pieces) => pieces.join(""), String);
      return text === LONG_TEXT ? undefined : text.slice(0, MOST_SHOWN);
    });
    await expectAnswers(caller, { to: clusterIP, port: 80 }, { by: [web] });
    await near.remove();
    await scene.until("8 lookups answered by the one that is left", async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => address(caller)));
      const wrong = answers.filter((came) => came !== clusterIP);
      return wrong.length === 0 ? undefined : wrong.join(", ");
    });
  },
};
