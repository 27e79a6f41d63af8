/** DNS: a server behind a service, and one on each node. */

import { modeNamed } from "@fairlead/lab/modes";
import { DNS_PORT, type DnsRecord, type Pod } from "@fairlead/lab/provider/cluster";
import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { expectAnswers } from "../expect.ts";
import { able, nearAndFar, needs, type Spec } from "../spec.ts";

/** By provider. */
const BRINGS_DNS: Readonly<Record<string, string>> = {
  netns: "apt-get install dnsmasq-base",
  kind: "its server is CoreDNS, which sig-network's specs ask",
};

/** Longer than any datagram that the server sends: resolvers ask again over TCP. */
const LONG_TEXT = "fairlead ".repeat(200).trim();

const CLUSTER_DNS_PORTS = [
  { name: "dns", port: 53, targetPort: DNS_PORT, protocol: "UDP" },
  { name: "dns-tcp", port: 53, targetPort: DNS_PORT, protocol: "TCP" },
];

const MOST_SHOWN = 200;

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
    const { clusterIP: server } = await scene.service("dns", { selector: { app: "dns" }, ports: CLUSTER_DNS_PORTS });
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

/** As kubelet names it to pods, and as a cluster of IPv6 has it. */
const LOCAL_DNS = { IPv4: "169.254.20.10", IPv6: "fd00:53::10" } as const;

/** What its own program makes for each of its addresses (kubernetes/dns, cmd/node-cache/app/cache_app.go). */
const LOCAL_DNS_RULES = `
  for address in $ADDRESSES; do for protocol in tcp udp; do
    $TOOL -w -t raw $HOW PREROUTING -p $protocol -d $address --dport 53 -j NOTRACK
    $TOOL -w -t filter $HOW INPUT -p $protocol -d $address --dport 53 -j ACCEPT
    $TOOL -w -t raw $HOW OUTPUT -p $protocol -s $address --sport 53 -j NOTRACK
    $TOOL -w -t filter $HOW OUTPUT -p $protocol -s $address --sport 53 -j ACCEPT
    $TOOL -w -t raw $HOW OUTPUT -p $protocol -d $address --dport 53 -j NOTRACK
  done; done
`;

/** A device of any kind, since kernels need not have dummies, and one for each family: both may be asked at once. */
const START_LOCAL_DNS = `
  ip link add $DEVICE type veth peer name $DEVICE-peer
  ip link set $DEVICE up && ip link set $DEVICE-peer up
  for address in $ADDRESSES; do ip address add $address dev $DEVICE $DETECTION; done
  dnsmasq --conf-file=/dev/null --no-resolv --no-hosts --no-poll --user=root --bind-interfaces $LISTEN \
    --pid-file=$PID_FILE --host-record=$RECORD
${LOCAL_DNS_RULES}`;

const END_LOCAL_DNS = `
  ip link delete $DEVICE 2>/dev/null || exit 0
  kill $(cat $PID_FILE)
${LOCAL_DNS_RULES}`;

const ANSWERS = {
  IPv4: { cluster: "192.0.2.1", node: "192.0.2.2" },
  IPv6: { cluster: "2001:db8::1", node: "2001:db8::2" },
} as const;

export const localDns: Spec = {
  name: "DNS: node-local DNS answers its node's pods, at the Service's address as well; the Service does where it is not",
  suite: "services",
  unfit: (shape) =>
    needs("dns", BRINGS_DNS[shape.provider])(shape) ??
    (shape.provider === "netns" ? undefined : "its device and its rules are made on a node's namespace"),
  run: async (scene) => {
    const { family, nodes, cluster } = scene;
    const [first, second] = nodes;
    const [server, caller, other, web] = await Promise.all([
      scene.pod({ node: second, app: "dns" }),
      scene.pod({ node: first }),
      scene.pod({ node: second }),
      scene.pod({ node: second, app: "web" }),
    ]);
    const name = "name.test";
    const type = family === "IPv4" ? "A" : "AAAA";
    const { cluster: clusters, node: nodesOwn } = ANSWERS[family];
    await able(server.serveDns)([{ name, type, value: clusters }]);
    const { clusterIP } = await scene.service("dns", { selector: { app: "dns" }, ports: CLUSTER_DNS_PORTS });
    const served = await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    const answers = (from: Pod, to: string, wanted: string) =>
      scene.until(`${wanted} from ${to} for ${from.name}`, async () => {
        const came = await able(from.lookUp)(to, { name, type }).then(String, String);
        return came === wanted ? undefined : came;
      });
    await answers(caller, clusterIP, clusters);
    // Where the Service's address is on a device of the proxy, upstream leaves it out, too.
    const own = modeNamed(cluster.mode).ownsAddresses ? [LOCAL_DNS[family]] : [LOCAL_DNS[family], clusterIP];
    const environment = [
      `ADDRESSES=${own.join(" ")}`,
      // By address: packets of IPv6 count for the device by which they come.
      `LISTEN=${own.map((address) => `--listen-address=${address}`).join(" ")}`,
      `TOOL=${PLAIN_TOOL[family]}`,
      `DEVICE=local-${family.toLowerCase()}`,
      `DETECTION=${family === "IPv6" ? "nodad" : ""}`,
      `PID_FILE=/tmp/fairlead-e2e-${process.pid}-${scene.namespace}.dns`,
      `RECORD=${name},${nodesOwn}`,
    ];
    const run = (script: string, how: "-I" | "-D") =>
      first.run(["env", ...environment, `HOW=${how}`, "sh", "-ec", script]);
    const end = async () => void (await run(END_LOCAL_DNS, "-D"));
    scene.later(end);
    await run(START_LOCAL_DNS, "-I");
    for (const to of own) await answers(caller, to, nodesOwn);
    await answers(other, clusterIP, clusters);
    await expectAnswers(caller, { to: served.clusterIP, port: 80 }, { by: [web] });
    await end();
    await answers(caller, clusterIP, clusters);
  },
};
