import { describe, expect, test } from "vitest";
import { createTracer, type Exploration, explore, landings, trace } from "../src/index.ts";
import { HOST, packet, places, ruleSet } from "./rule-set.ts";

const forward = (rules: string) => ruleSet({ filter: rules });

/** `verdict if rule, unless rule`, and the problems of ways that the tracer cannot follow. */
function reported({ outcomes, undecided }: Exploration): string[] {
  return [
    ...outcomes.map(({ verdict, assumed = [] }) =>
      [verdict, ...assumed.map(({ matched, chain, index }) => `${matched ? "if" : "unless"} ${chain} ${index}`)].join(
        " ",
      ),
    ),
    ...undecided.map(({ problem }) => `undecided: ${problem.chain} ${problem.index}`),
  ].sort();
}

describe("rules that can't be decided", () => {
  test("both ways are taken, and each says what it takes for granted", () => {
    const rules = forward("-A FORWARD -m limit --limit 5/min -j A\n-A FORWARD -j DROP\n-A A -j REJECT\n");
    const explored = explore(rules, packet(), HOST);
    expect(reported(explored)).toEqual(["drop unless FORWARD 0", "reject if FORWARD 0"]);
    expect(explored.outcomes[0]?.assumed?.[0]?.problem).toContain('does not know the match "limit"');
  });

  test("one that another match rules out is no matter", () => {
    const rules = forward("-A FORWARD -m limit --limit 5/min -m mark --mark 0x1 -j DROP\n");
    expect(reported(explore(rules, packet(), HOST))).toEqual(["accept"]);
  });

  test("one that only writes something down is no matter", () => {
    const rules = forward("-A FORWARD -m limit --limit 5/min -j LOG\n-A FORWARD -m limit --limit 5/min\n");
    expect(reported(explore(rules, packet(), HOST))).toEqual(["accept"]);
  });

  test("facts that the environment does not say are assumed, too", () => {
    const rules = forward("-A FORWARD -o cali+ -m set --match-set absent dst -j DROP\n");
    expect(reported(explore(rules, packet(), {}))).toEqual(["accept unless FORWARD 0", "drop if FORWARD 0"]);
  });

  test("a way ends at a target that the tracer doesn't know; the others go on", () => {
    const rules = forward(
      "-A FORWARD -m statistic --mode random --probability 0.25000000000 -j CONNMARK --restore-mark\n-A FORWARD -j DROP\n",
    );
    const explored = explore(rules, packet(), HOST);
    expect(reported(explored)).toEqual(["drop", "undecided: FORWARD 0"]);
    expect(explored.undecided[0]?.probability).toBe(0.25);
  });

  test("a way that takes too much for granted is given up", () => {
    const rules = forward(`${"-A FORWARD -m limit --limit 5/min -j A\n".repeat(11)}-A A -j RETURN\n`);
    const { undecided, outcomes } = explore(rules, packet(), HOST);
    expect(outcomes).toHaveLength(0);
    expect(undecided.every(({ assumed }) => assumed.length === 10)).toBe(true);
  });

  test("where all is decided it is what trace gives", () => {
    const rules = forward("-A FORWARD -m statistic --mode random --probability 0.25000000000 -j DROP\n");
    expect(explore(rules, packet(), HOST)).toEqual({ outcomes: trace(rules, packet(), HOST), undecided: [] });
  });
});

describe("firewalls of others", () => {
  test("docker's published port", () => {
    const rules = ruleSet({
      nat:
        "-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER\n-A DOCKER -i docker0 -j RETURN\n" +
        "-A DOCKER ! -i docker0 -p tcp -m tcp --dport 80 -j DNAT --to-destination 172.17.0.2:8080\n" +
        "-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE\n",
      filter:
        ":FORWARD DROP [0:0]\n-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A FORWARD -o docker0 -j DOCKER\n" +
        "-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 8080 -j ACCEPT\n",
    });
    const environment = { ...HOST, outInterface: (to: string) => (to.startsWith("172.17.") ? "docker0" : "eth0") };
    expect(places(rules, packet({ destination: "10.201.0.10" }), environment)).toEqual(["→ 172.17.0.2:8080"]);
    expect(places(rules, packet({ destination: "10.201.0.10", dport: 81 }), environment)).toEqual(["→ 10.201.0.10:81"]);
  });

  test("ufw's limit for ssh, whose list is unknown", () => {
    const rules = ruleSet({
      filter:
        ":INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -m conntrack --ctstate NEW -m recent --set --name DEFAULT --mask 255.255.255.255 --rsource\n" +
        "-A INPUT -p tcp -m tcp --dport 22 -m conntrack --ctstate NEW -m recent --update --seconds 30 --hitcount 6 --name DEFAULT --mask 255.255.255.255 --rsource -j LIMIT\n" +
        "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n" +
        '-A LIMIT -m limit --limit 3/min -j LOG --log-prefix "[UFW LIMIT BLOCK] "\n-A LIMIT -j REJECT\n',
    });
    const explored = explore(rules, packet({ destination: "10.201.0.10", dport: 22 }), HOST);
    expect(reported(explored)).toEqual(["accept unless INPUT 1", "reject if INPUT 1"]);
  });

  test("calico's reverse-path check and its SNAT", () => {
    const rules = ruleSet({
      raw: "-A PREROUTING -m rpfilter --validmark --invert -j DROP\n",
      nat: "-A POSTROUTING -o eth0 -j SNAT --to-source 10.201.0.10\n",
    });
    const { outcomes } = explore(rules, packet(), HOST);
    expect(landings(outcomes).map(({ verdict, masqueraded }) => [verdict, masqueraded])).toEqual([
      ["drop", false],
      ["accept", true],
    ]);
    expect(outcomes.at(-1)?.source.address).toBe("10.201.0.10");
  });

  test("what is not tracked asks no nat table", () => {
    const rules = ruleSet({
      raw: "-A PREROUTING -j CT --notrack\n",
      nat: "-A PREROUTING -p tcp -j DNAT --to-destination 10.144.1.5\n",
    });
    expect(places(rules, packet())).toEqual(["→ 10.0.0.1:80"]);
  });

  test("SNAT to a range is a choice of the kernel's own", () => {
    const rules = ruleSet({ nat: "-A POSTROUTING -j SNAT --to-source 10.0.0.1-10.0.0.9\n" });
    expect(() => trace(rules, packet(), HOST)).toThrow("cannot decide which of 10.0.0.1-10.0.0.9 SNAT takes");
  });
});

describe("long chains", () => {
  test("are walked as short ones are, though rules for other addresses are passed over", () => {
    const many = Array.from({ length: 200 }, (_, at) => `-A A -d 10.0.${at}.1/32 -j MARK --set-xmark 0x1/0x0\n`);
    const rules = (own: string) =>
      forward(
        `-A FORWARD -j A\n${many.join("")}-A A -d 10.0.0.0/16 ${own}\n${many.join("")}-A A ! -d 10.1.0.1/32 -j DROP\n`,
      );
    const visits = (to: string, own: string) =>
      createTracer(rules(own))
        .trace(packet({ destination: to }), HOST)
        .map((outcome) => [outcome.verdict, ...outcome.visits.map(({ index }) => index)]);
    expect(visits("10.0.7.1", "")).toEqual([["drop", 0, 7, 200, 208, 401]]);
    expect(visits("10.0.7.2", "-j RETURN")).toEqual([["accept", 0, 200]]);
    expect(visits("10.1.0.1", "")).toEqual([["accept", 0]]);
    expect(visits("192.0.2.1", "")).toEqual([["drop", 0, 401]]);
  });
});

const TO_A = "-j DNAT --to-destination 10.144.1.5:8080";
const TO_B = "-j DNAT --to-destination 10.144.2.6:8080";
const HALF = "-m statistic --mode random --probability 0.5";

/** The destination, verdict, share and rules of every way. */
function ways(nat: readonly string[], forward: readonly string[]): readonly string[] {
  const rules = ruleSet({
    nat: nat.map((rule) => `-A PREROUTING -p tcp ${rule}\n`).join(""),
    filter: forward.map((rule) => `-A FORWARD ${rule}\n`).join(""),
  });
  return trace(rules, packet(), HOST)
    .map(({ destination, verdict, probability, visits }) => {
      const visited = visits.map(({ table, index }) => `${table} ${index}`).join(", ");
      return `${destination.address} ${verdict} ${probability}: ${visited}`;
    })
    .toSorted();
}

describe("ways that come to a hook alike", () => {
  test("go on alike, each with its share and the rules that led it there", () => {
    const draws = [`${HALF} ${TO_A}`, `${HALF} ${TO_A}`, `${HALF} ${TO_B}`, TO_A];
    expect(ways(draws, ["-d 10.144.1.5 -p tcp", "-d 10.144.2.6 -j DROP", "-p tcp"])).toEqual([
      "10.144.1.5 accept 0.125: nat 3, filter 0, filter 2",
      "10.144.1.5 accept 0.25: nat 1, filter 0, filter 2",
      "10.144.1.5 accept 0.5: nat 0, filter 0, filter 2",
      "10.144.2.6 drop 0.125: nat 2, filter 1",
    ]);
  });

  test("may part again behind it", () => {
    expect(ways([`${HALF} ${TO_A}`, TO_A], [`${HALF} -j DROP`, "-p tcp"])).toEqual([
      "10.144.1.5 accept 0.25: nat 0, filter 1",
      "10.144.1.5 accept 0.25: nat 1, filter 1",
      "10.144.1.5 drop 0.25: nat 0, filter 0",
      "10.144.1.5 drop 0.25: nat 1, filter 0",
    ]);
  });

  test.each([
    ["their marks", "-j MARK --set-xmark 0x1/0x1", "-m mark --mark 0x1/0x1 -j DROP"],
    ["what they left in lists", "-m recent --name L --set", "-m recent --name L --rcheck -j DROP"],
  ])("are no longer alike where %s differ", (_, leave, ask) => {
    const rules = [`${HALF} -g marked`, TO_A];
    const nat = `${rules.map((rule) => `-A PREROUTING -p tcp ${rule}\n`).join("")}-A marked ${leave}\n-A marked -p tcp ${TO_A}\n`;
    const outcomes = trace(ruleSet({ nat, filter: `-A FORWARD ${ask}\n` }), packet(), HOST);
    expect(outcomes.map(({ verdict, probability }) => [verdict, probability]).toSorted()).toEqual([
      ["accept", 0.5],
      ["drop", 0.5],
    ]);
  });
});
